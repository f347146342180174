// Checks of arguments, whose message is the sentence alone. Torch's STD_TORCH_CHECK puts the source file's
// path on the builder's machine before it.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <initializer_list>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

namespace mnmt_moe {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

template <typename... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
    std::ostringstream message;
    ((message << parts), ...);
    throw std::runtime_error(message.str());
}

// The message's parts are made only if the condition does not hold.
#define MNMT_CHECK(condition, ...)           \
    do {                                     \
        if (!(condition)) {                  \
            ::mnmt_moe::refuse(__VA_ARGS__); \
        }                                    \
    } while (false)

// The name of a type in Python, of those that arguments have.
inline const char* name_of(ScalarType type) {
    switch (type) {
        case ScalarType::Float:
            return "float32";
        case ScalarType::BFloat16:
            return "bfloat16";
        case ScalarType::Double:
            return "float64";
        case ScalarType::Int:
            return "int32";
        case ScalarType::Long:
            return "int64";
        case ScalarType::Bool:
            return "bool";
        default:
            return "another type";
    }
}

// For example "float32 (2, 3)".
inline std::string describe(ScalarType type, torch::headeronly::IntHeaderOnlyArrayRef sizes) {
    std::ostringstream text;
    text << name_of(type) << " (";
    const char* separator = "";
    for (const int64_t size : sizes) {
        text << separator << size;
        separator = ", ";
    }
    text << ")";
    return text.str();
}

// Checks the type, the sizes and the device, which is that of `beside`.
inline void check_tensor(const Tensor& tensor, const char* name, ScalarType type,
                         std::initializer_list<int64_t> sizes, const Tensor& beside) {
    if (tensor.scalar_type() == type && tensor.sizes() == sizes && tensor.device() == beside.device()) {
        return;
    }
    refuse("`", name, "` must be ", describe(type, sizes), ", on the device of the others, but is ",
           describe(tensor.scalar_type(), tensor.sizes()),
           tensor.device() == beside.device() ? "" : " on another device");
}

inline void check_tensor(const std::optional<Tensor>& tensor, const char* name, ScalarType type,
                         std::initializer_list<int64_t> sizes, const Tensor& beside) {
    if (tensor.has_value()) {
        check_tensor(*tensor, name, type, sizes, beside);
    }
}

}  // namespace mnmt_moe
