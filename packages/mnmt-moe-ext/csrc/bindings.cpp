// What is not a tensor operation: the capacity plan and how the extension was built.
#include <pybind11/pybind11.h>

#include <string>

#include "capacity.h"

namespace py = pybind11;

namespace {

struct BuildInfo {
    std::string compiler = MNMT_MOE_COMPILER;
    std::string torch_version = MNMT_MOE_TORCH_VERSION;
    std::string minimum_torch_version = MNMT_MOE_MINIMUM_TORCH;
    std::string cuda_architectures = MNMT_MOE_CUDA_ARCHITECTURES;
};

}  // namespace

PYBIND11_MODULE(_native, module) {
    py::class_<BuildInfo>(module, "BuildInfo", "How the extension was built.")
        .def_readonly("compiler", &BuildInfo::compiler, "Name and version of the C++ compiler.")
        .def_readonly("torch_version", &BuildInfo::torch_version, "The torch whose headers were used.")
        .def_readonly("minimum_torch_version", &BuildInfo::minimum_torch_version,
                      "The oldest torch whose stable ABI the extension needs.")
        .def_readonly("cuda_architectures", &BuildInfo::cuda_architectures,
                      "The GPU architectures compiled for; empty without CUDA kernels.");
    module.def("build_info", [] { return BuildInfo{}; }, "How the extension was built.");
    module.def("expert_capacity", &mnmt_moe::expert_capacity, py::kw_only(), py::arg("num_tokens"),
               py::arg("num_experts"), py::arg("capacity_factor"));
}
