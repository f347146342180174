// Bindings of what takes no tensors: how the extension was built, and the random generator, which tests
// compare with the reference.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <map>
#include <string>

#include "philox.h"

namespace py = pybind11;

namespace {

std::map<std::string, std::string> build_info() {
    return {{"compiler", MNMT_MOE_COMPILER},
            {"torch_version", MNMT_MOE_TORCH_VERSION},
            {"minimum_torch_version", MNMT_MOE_MINIMUM_TORCH},
            {"cuda_architectures", MNMT_MOE_CUDA_ARCHITECTURES}};
}

std::array<uint32_t, 4> philox4x32(const std::array<uint32_t, 4>& counter,
                                   const std::array<uint32_t, 2>& key) {
    const auto random =
        mnmt_moe::philox4x32({{counter[0], counter[1], counter[2], counter[3]}}, {{key[0], key[1]}});
    return {random.words[0], random.words[1], random.words[2], random.words[3]};
}

}  // namespace

PYBIND11_MODULE(_native, module) {
    module.def("build_info", &build_info);
    module.def("philox4x32", &philox4x32, py::kw_only(), py::arg("counter"), py::arg("key"));
}
