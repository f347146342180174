// What GCC adds to kernels: a call before each access to memory (-fsanitize=thread), and one at an overflow
// (-fsanitize=signed-integer-overflow). The names are those of its run-time libraries, which are not linked.
#include <string>

#include "emulator.h"

using emulator::Access;
using emulator::access;

namespace {

struct Place {
    const char* file;
    uint32_t line;
};

void overflow(const Place& place) {
    const std::string file(place.file);
    emulator::fail("overflow: a signed integer, at " + file.substr(file.rfind('/') + 1) + ":" +
                   std::to_string(place.line) + ".");
}

}  // namespace

#define MNMT_MOE_ACCESS(bytes)                                                             \
    void __tsan_read##bytes(const void* address) { access(address, bytes, Access::read); } \
    void __tsan_write##bytes(const void* address) { access(address, bytes, Access::write); }

extern "C" {

MNMT_MOE_ACCESS(1)
MNMT_MOE_ACCESS(2)
MNMT_MOE_ACCESS(4)
MNMT_MOE_ACCESS(8)
MNMT_MOE_ACCESS(16)
void __tsan_read_range(const void* address, size_t bytes) { access(address, bytes, Access::read); }
void __tsan_write_range(const void* address, size_t bytes) { access(address, bytes, Access::write); }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}

void __ubsan_handle_add_overflow(const Place* place, void*, void*) { overflow(*place); }
void __ubsan_handle_sub_overflow(const Place* place, void*, void*) { overflow(*place); }
void __ubsan_handle_mul_overflow(const Place* place, void*, void*) { overflow(*place); }
void __ubsan_handle_divrem_overflow(const Place* place, void*, void*) { overflow(*place); }
void __ubsan_handle_negate_overflow(const Place* place, void*) { overflow(*place); }

}  // extern "C"
