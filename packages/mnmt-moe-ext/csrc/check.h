// A check of an argument, whose message is the sentence alone. Torch's STD_TORCH_CHECK puts the source file's
// path on the builder's machine before it.
#pragma once

#include <sstream>
#include <stdexcept>

namespace mnmt_moe {

template <typename... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
    std::ostringstream message;
    ((message << parts), ...);
    throw std::runtime_error(message.str());
}

}  // namespace mnmt_moe

// The message's parts are made only if the condition does not hold.
#define MNMT_CHECK(condition, ...)           \
    do {                                     \
        if (!(condition)) {                  \
            ::mnmt_moe::refuse(__VA_ARGS__); \
        }                                    \
    } while (false)
