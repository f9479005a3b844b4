# The rooms of engine/, lowest first. A room is the target paddle_<room> (slashes become
# underscores), made of all .cc files in its folder, and links the rooms before it; a room without
# sources is an empty target. scripts/check-includes checks every #include against the same order.
set(PADDLE_ROOMS
  base config tensor ops ir kernels comm autograd passes codegen runtime
  metrics optim formats decoding onnx lang data profile program train infer convert inspect quant tune dist ps plugin)

# What each room links beside the rooms before it.
set(PADDLE_LINKS_base Threads::Threads fmt::fmt spdlog::spdlog)
if(PADDLE_USE_OPENMP)
  list(APPEND PADDLE_LINKS_base OpenMP::OpenMP_CXX)
endif()
set(PADDLE_LINKS_kernels paddle_highway paddle_dnnl Eigen3::Eigen m)
set(PADDLE_LINKS_optim yaml-cpp)
set(PADDLE_LINKS_formats ZLIB::ZLIB PNG::PNG JPEG::JPEG nlohmann_json::nlohmann_json
  protobuf::libprotobuf-lite)
set(PADDLE_LINKS_config yaml-cpp nlohmann_json::nlohmann_json)
set(PADDLE_LINKS_data nlohmann_json::nlohmann_json yaml-cpp)
set(PADDLE_LINKS_profile nlohmann_json::nlohmann_json)
set(PADDLE_LINKS_program yaml-cpp nlohmann_json::nlohmann_json)
set(PADDLE_LINKS_train yaml-cpp nlohmann_json::nlohmann_json)
set(PADDLE_LINKS_infer yaml-cpp nlohmann_json::nlohmann_json)
set(PADDLE_LINKS_convert nlohmann_json::nlohmann_json)
set(PADDLE_LINKS_inspect nlohmann_json::nlohmann_json)

# ---- opgen: the host tool that reads the operation schema ----------------------------------------

set(PADDLE_GENERATED_ROOT ${CMAKE_BINARY_DIR}/generated)
set(PADDLE_GENERATED_OPS_SOURCES ${PADDLE_GENERATED_ROOT}/ops/generated/table.cc)
set(PADDLE_GENERATED_KERNEL_SOURCES
  ${PADDLE_GENERATED_ROOT}/kernels/generated/cpu_table.cc
  ${PADDLE_GENERATED_ROOT}/kernels/generated/onednn_table.cc)
set(PADDLE_GENERATED_HEADERS
  ${PADDLE_GENERATED_ROOT}/ops/generated/ops.h
  ${PADDLE_GENERATED_ROOT}/ops/generated/attrs.h
  ${PADDLE_GENERATED_ROOT}/ops/generated/rules.h)

file(GLOB opgen_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/engine/ops/opgen/*.cc)
file(GLOB schema_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/engine/ops/schema/*.yaml)
function(paddle_add_opgen)
  add_executable(opgen ${opgen_sources})
  target_include_directories(opgen PRIVATE ${CMAKE_SOURCE_DIR}/engine)
  target_link_libraries(opgen PRIVATE paddle_base paddle_flags yaml-cpp)
  set_target_properties(opgen PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/host)
  # The outputs are by-products of a stamp, so that files whose text did not change keep their time.
  add_custom_command(
    OUTPUT ${PADDLE_GENERATED_ROOT}/opgen.stamp
    BYPRODUCTS ${PADDLE_GENERATED_OPS_SOURCES} ${PADDLE_GENERATED_KERNEL_SOURCES}
               ${PADDLE_GENERATED_HEADERS}
    COMMAND opgen ${schema_files} --out ${PADDLE_GENERATED_ROOT}
    COMMAND ${CMAKE_COMMAND} -E touch ${PADDLE_GENERATED_ROOT}/opgen.stamp
    DEPENDS opgen ${schema_files}
    COMMENT "opgen: operations from engine/ops/schema"
    VERBATIM)
  add_custom_target(paddle_generated DEPENDS ${PADDLE_GENERATED_ROOT}/opgen.stamp)
endfunction()

# ---- protoc: the wire format of ONNX --------------------------------------------------------------

set(PADDLE_WIRE_DIR ${PADDLE_GENERATED_ROOT}/formats/generated/onnx)
set(PADDLE_WIRE_SOURCES ${PADDLE_WIRE_DIR}/wire.pb.cc)
file(MAKE_DIRECTORY ${PADDLE_WIRE_DIR})
add_custom_command(
  OUTPUT ${PADDLE_WIRE_SOURCES} ${PADDLE_WIRE_DIR}/wire.pb.h
  COMMAND protobuf::protoc --proto_path=${CMAKE_SOURCE_DIR}/engine/formats/onnx
          --cpp_out=${PADDLE_WIRE_DIR} wire.proto
  DEPENDS ${CMAKE_SOURCE_DIR}/engine/formats/onnx/wire.proto
  COMMENT "protoc: engine/formats/onnx/wire.proto"
  VERBATIM)
set_source_files_properties(${PADDLE_WIRE_SOURCES} PROPERTIES COMPILE_OPTIONS -w)

# ---- the standard rewrites, as text in the program -------------------------------------------------

set(PADDLE_RULES ${CMAKE_SOURCE_DIR}/engine/passes/rules/standard.rules)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PADDLE_RULES})
file(READ ${PADDLE_RULES} PADDLE_RULES_TEXT)
file(CONFIGURE OUTPUT ${PADDLE_GENERATED_ROOT}/passes/generated/standard_rules.h @ONLY CONTENT [=[
// Made of engine/passes/rules/standard.rules.
#pragma once
namespace paddle::passes {
inline constexpr char kStandardRules[] = R"RULES(@PADDLE_RULES_TEXT@)RULES";
}  // namespace paddle::passes
]=])

# ---- the headers of most files, compiled once ------------------------------------------------------

# They were a third of the compiler's time. Only optimised builds by g++ use them: in the other
# builds each file sees what it includes, so that nothing is missing unseen. Kernels have compiler
# flags of their own, and so a compiled copy of their own; base is smaller than the copy.
set(PADDLE_COMMON_HEADERS OFF)
if(PADDLE_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release"
   AND NOT PADDLE_SANITIZE)
  set(PADDLE_COMMON_HEADERS ON)
endif()
function(paddle_use_common_headers target room)
  if(NOT PADDLE_COMMON_HEADERS OR room STREQUAL "base")
    return()
  elseif(room MATCHES "^(tensor|kernels)$")
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/common_headers.h)
  else()
    target_precompile_headers(${target} REUSE_FROM paddle_tensor)
  endif()
  # With it ccache can tell which compiled headers a file used.
  target_compile_options(${target} PRIVATE -fpch-preprocess)
endfunction()

# ---- the rooms -----------------------------------------------------------------------------------

set(previous "")
foreach(room IN LISTS PADDLE_ROOMS)
  string(REPLACE "/" "_" name ${room})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/engine/${room}/*.cc)
  if(room STREQUAL "ops")
    list(FILTER sources EXCLUDE REGEX "/engine/ops/opgen/")
    if(opgen_sources AND schema_files)
      paddle_add_opgen()
      list(APPEND sources ${PADDLE_GENERATED_OPS_SOURCES})
    endif()
  elseif(room STREQUAL "kernels" AND TARGET paddle_generated)
    list(APPEND sources ${PADDLE_GENERATED_KERNEL_SOURCES})
  elseif(room STREQUAL "codegen")
    list(FILTER sources EXCLUDE REGEX "/engine/codegen/llvm/")
  elseif(room STREQUAL "formats" AND sources)
    list(APPEND sources ${PADDLE_WIRE_SOURCES})
  endif()

  if(sources)
    add_library(paddle_${name} ${sources})
    # As a shared library, a room must not take the name of the module codegen opens.
    set_target_properties(paddle_${name} PROPERTIES OUTPUT_NAME paddle_room_${name})
    set(scope PUBLIC)
    target_link_libraries(paddle_${name} PRIVATE paddle_flags ${PADDLE_LINKS_${name}})
    paddle_use_common_headers(paddle_${name} ${room})
    if(TARGET paddle_generated)
      add_dependencies(paddle_${name} paddle_generated)
    endif()
  else()
    add_library(paddle_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(paddle_${name} ${scope}
    ${CMAKE_SOURCE_DIR}/engine ${PADDLE_GENERATED_ROOT})
  if(previous)
    target_link_libraries(paddle_${name} ${scope} paddle_${previous})
  endif()
  set(previous ${name})
endforeach()
add_library(paddle_engine INTERFACE)
target_link_libraries(paddle_engine INTERFACE paddle_${previous})

get_target_property(codegen_type paddle_codegen TYPE)
if(NOT codegen_type STREQUAL "INTERFACE_LIBRARY")
  target_compile_definitions(paddle_codegen PRIVATE PADDLE_GENERATOR="${PADDLE_GENERATOR}"
    $<$<BOOL:${PADDLE_WITH_LLVM}>:PADDLE_WITH_LLVM>)
  target_link_libraries(paddle_codegen PRIVATE ${CMAKE_DL_LIBS})
  if(PADDLE_WITH_LLVM)
    add_dependencies(paddle_codegen paddle_codegen_module)
  endif()
endif()

get_target_property(train_type paddle_train TYPE)
if(NOT train_type STREQUAL "INTERFACE_LIBRARY")
  target_compile_definitions(paddle_train PRIVATE PADDLE_VERSION="${PROJECT_VERSION}")
endif()

if(PADDLE_USE_OPENMP)
  get_target_property(base_type paddle_base TYPE)
  if(NOT base_type STREQUAL "INTERFACE_LIBRARY")
    target_compile_definitions(paddle_base PRIVATE PADDLE_USE_OPENMP=1)
  endif()
endif()

# Kernels rely on the auto-vectorizer, and Highway compiles each *_simd.cc for three instruction
# sets: the x86-64 baseline, AVX2 and AVX-512.
get_target_property(kernels_type paddle_kernels TYPE)
if(NOT kernels_type STREQUAL "INTERFACE_LIBRARY")
  target_compile_options(paddle_kernels PRIVATE
    $<$<CONFIG:Release>:-O3> -fno-math-errno -fno-trapping-math)
  target_compile_definitions(paddle_kernels PRIVATE
    HWY_DISABLED_TARGETS=\(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL\))
endif()
