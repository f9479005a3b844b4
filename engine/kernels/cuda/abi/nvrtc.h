#pragma once
// The part of NVRTC's interface that we call, declared here so that building needs no CUDA. Names,
// values and signatures are those of `nvrtc.h`.

#include <cstddef>

namespace paddle::cuda {

using nvrtcResult = int;
using nvrtcProgram = struct _nvrtcProgram*;

inline constexpr nvrtcResult NVRTC_SUCCESS = 0;
inline constexpr nvrtcResult NVRTC_ERROR_COMPILATION = 6;

struct Nvrtc {
  nvrtcResult (*nvrtcVersion)(int* major, int* minor);
  const char* (*nvrtcGetErrorString)(nvrtcResult result);
  nvrtcResult (*nvrtcGetNumSupportedArchs)(int* count);
  nvrtcResult (*nvrtcGetSupportedArchs)(int* architectures);
  nvrtcResult (*nvrtcCreateProgram)(nvrtcProgram* program, const char* text, const char* name,
                                    int headers, const char* const* header_texts,
                                    const char* const* header_names);
  nvrtcResult (*nvrtcDestroyProgram)(nvrtcProgram* program);
  nvrtcResult (*nvrtcCompileProgram)(nvrtcProgram program, int count, const char* const* options);
  nvrtcResult (*nvrtcGetCUBINSize)(nvrtcProgram program, size_t* bytes);
  nvrtcResult (*nvrtcGetCUBIN)(nvrtcProgram program, char* image);
  nvrtcResult (*nvrtcGetProgramLogSize)(nvrtcProgram program, size_t* bytes);
  nvrtcResult (*nvrtcGetProgramLog)(nvrtcProgram program, char* log);
};

/// Calls visit(name, member) for each function.
template <class Visit>
void visit_functions(Nvrtc& nvrtc, Visit&& visit) {
  visit("nvrtcVersion", nvrtc.nvrtcVersion);
  visit("nvrtcGetErrorString", nvrtc.nvrtcGetErrorString);
  visit("nvrtcGetNumSupportedArchs", nvrtc.nvrtcGetNumSupportedArchs);
  visit("nvrtcGetSupportedArchs", nvrtc.nvrtcGetSupportedArchs);
  visit("nvrtcCreateProgram", nvrtc.nvrtcCreateProgram);
  visit("nvrtcDestroyProgram", nvrtc.nvrtcDestroyProgram);
  visit("nvrtcCompileProgram", nvrtc.nvrtcCompileProgram);
  visit("nvrtcGetCUBINSize", nvrtc.nvrtcGetCUBINSize);
  visit("nvrtcGetCUBIN", nvrtc.nvrtcGetCUBIN);
  visit("nvrtcGetProgramLogSize", nvrtc.nvrtcGetProgramLogSize);
  visit("nvrtcGetProgramLog", nvrtc.nvrtcGetProgramLog);
}

}  // namespace paddle::cuda
