# The libraries of engine/: generated sources, precompiled headers, and one library per room.

# --- opgen: the host tool that reads the operation schema ---

set(PADDLE_GENERATED_ROOT ${CMAKE_BINARY_DIR}/generated)
file(GLOB schema_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/engine/ops/*/*.yaml)
set(PADDLE_GENERATED_OPS_SOURCES ${PADDLE_GENERATED_ROOT}/ops/generated/table.cc)
set(PADDLE_GENERATED_HEADERS ${PADDLE_GENERATED_ROOT}/ops/generated/ops.h)
set(PADDLE_GENERATED_KERNEL_SOURCES ${PADDLE_GENERATED_ROOT}/kernels/generated/cpu_table.cc)
set(PADDLE_GENERATED_IO_KERNEL_SOURCES ${PADDLE_GENERATED_ROOT}/io_kernels/generated/table.cc)
set(families ${schema_files})
list(FILTER families EXCLUDE REGEX "/core/")
list(TRANSFORM families REPLACE ".*/([^/]+)/[^/]+$" "\\1")
list(REMOVE_DUPLICATES families)
foreach(family IN LISTS families)
  list(APPEND PADDLE_GENERATED_OPS_SOURCES ${PADDLE_GENERATED_ROOT}/ops/generated/${family}.cc)
  list(APPEND PADDLE_GENERATED_HEADERS
    ${PADDLE_GENERATED_ROOT}/ops/generated/${family}.h
    ${PADDLE_GENERATED_ROOT}/ops/generated/${family}_rules.h)
endforeach()

file(GLOB opgen_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/engine/op_schema/opgen/*.cc)
function(paddle_add_opgen)
  add_executable(opgen ${opgen_sources})
  target_include_directories(opgen PRIVATE ${CMAKE_SOURCE_DIR}/engine)
  target_link_libraries(opgen PRIVATE paddle_op_schema paddle_flags)
  set_target_properties(opgen PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/host)
  # The outputs are by-products of a stamp, so that files whose text did not change keep their time.
  add_custom_command(
    OUTPUT ${PADDLE_GENERATED_ROOT}/opgen.stamp
    BYPRODUCTS ${PADDLE_GENERATED_OPS_SOURCES} ${PADDLE_GENERATED_KERNEL_SOURCES}
               ${PADDLE_GENERATED_IO_KERNEL_SOURCES} ${PADDLE_GENERATED_HEADERS}
    COMMAND opgen ${schema_files} --out ${PADDLE_GENERATED_ROOT}
    COMMAND ${CMAKE_COMMAND} -E touch ${PADDLE_GENERATED_ROOT}/opgen.stamp
    DEPENDS opgen ${schema_files}
    COMMENT "opgen: operations from engine/ops/*/*.yaml"
    VERBATIM)
  add_custom_target(paddle_generated DEPENDS ${PADDLE_GENERATED_ROOT}/opgen.stamp)
endfunction()

# --- protoc: the wire format of ONNX ---

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

# --- the standard rewrite rules, as text in the program ---

set(PADDLE_RULES ${CMAKE_SOURCE_DIR}/engine/compiler/passes/rules/standard.rules)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PADDLE_RULES})
file(READ ${PADDLE_RULES} PADDLE_RULES_TEXT)
file(CONFIGURE OUTPUT ${PADDLE_GENERATED_ROOT}/compiler/generated/standard_rules.h @ONLY CONTENT [=[
// Made of engine/compiler/passes/rules/standard.rules.
#pragma once
namespace paddle::passes {
inline constexpr char kStandardRules[] = R"RULES(@PADDLE_RULES_TEXT@)RULES";
}  // namespace paddle::passes
]=])

# --- rooms with less optimization ---

# Rooms whose code takes no part of a step's or a request's time: they compile a fifth faster with
# less optimization. (Operations run in kernels; ops has their rules.)
set(PADDLE_COLD_ROOMS
  config conformance convert exporter hub inspect lang launch onnx op_schema ops paddle_program
  partition plugin profile program quant recipes sections serve train tune)

# --- the headers of most files, compiled once ---

# They were a third of the compiler's time, and two thirds without optimization. Only optimized
# builds by g++ use them unless PADDLE_PCH is ALL: in the other builds each file sees what it
# includes, so that nothing is missing unseen. Kernels have compiler flags of their own, and so a
# compiled copy of their own; base is smaller than the copy, and api hides its symbols. Tests add
# GoogleTest.
set(PADDLE_COMMON_HEADERS OFF)
# A header is compiled from its source, never from an older compiled copy next to it, which ccache
# would take for the source.
list(APPEND CMAKE_CXX_COMPILE_OPTIONS_CREATE_PCH -fno-pch-preprocess)
if(PADDLE_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND
   (PADDLE_PCH STREQUAL "ALL" OR (CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT PADDLE_SANITIZE)))
  set(PADDLE_COMMON_HEADERS ON)
  # Without this ccache keeps no file that uses a compiled header.
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "(^|/)ccache$" AND NOT DEFINED ENV{CCACHE_SLOPPINESS})
    list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros)
  endif()
endif()
# Programs and tests share the compiled headers of the libraries they use, which are compiled for
# position-independent code as libraries are.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
# paddle_compile_headers(TARGET HEADER) compiles HEADER for TARGET; others reuse it with
# paddle_reuse_headers(TARGET OWNER).
function(paddle_compile_headers target header)
  if(PADDLE_COMMON_HEADERS)
    # By a name without the folder of the sources: checkouts share the compiler cache.
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake)
    target_precompile_headers(${target} PRIVATE <${header}>)
    # With it ccache can tell which compiled headers a file used.
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
endfunction()
function(paddle_reuse_headers target owner)
  if(PADDLE_COMMON_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
endfunction()
# Headers keep the optimization that they were compiled with: cold rooms and commands have a copy of
# their own, compiled for config.
function(paddle_use_common_headers target room)
  if(room MATCHES "^(base|api|python)$")
    return()
  elseif(room MATCHES "^(tensor|kernels)$")
    paddle_compile_headers(${target} common_headers.h)
  elseif(room STREQUAL config)
    paddle_compile_headers(${target} cold_headers.h)
  elseif(room IN_LIST PADDLE_COLD_ROOMS)
    paddle_reuse_headers(${target} paddle_config)
  else()
    paddle_reuse_headers(${target} paddle_tensor)
  endif()
endfunction()

# --- groups of sources ---

# paddle_group_sources(TARGET LIMIT file...)
# Compiles the sources of a library in groups of at most LIMIT, which are as large as each other. A
# group that has half of them ends with its folder, so few groups hold files of several folders.
function(paddle_group_sources target limit)
  list(LENGTH ARGN total)
  math(EXPR groups "(${total} + ${limit} - 1) / ${limit}")
  math(EXPR most "(${total} + ${groups} - 1) / ${groups}")
  math(EXPR half "(${limit} - 1) / 2")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A .cc file may use its own anonymous namespace in a class that it defines.
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  set(group 0)
  set(count 0)
  set(last_folder "")
  foreach(file IN LISTS ARGN)
    get_filename_component(folder ${file} DIRECTORY)
    if(count EQUAL most OR (count GREATER_EQUAL half AND NOT folder STREQUAL last_folder))
      math(EXPR group "${group} + 1")
      set(count 0)
    endif()
    set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${group})
    math(EXPR count "${count} + 1")
    set(last_folder ${folder})
  endforeach()
endfunction()

# --- rooms ---

# paddle_room(NAME DEPENDS room... LIBRARIES target... SOURCES file... EXCLUDE regex NEEDS variable)
# Makes the library paddle_NAME of all .cc files in engine/NAME. DEPENDS lists every room whose headers
# the room includes; a room must be declared after the rooms it depends on, so there are no cycles.
# scripts/check-includes reads these declarations and checks each #include against them. LIBRARIES
# are third-party, SOURCES are generated files, EXCLUDE leaves out files that other targets compile.
# A room is left out where the variable that it NEEDS is false.
set(PADDLE_ROOMS "")
# paddle_embed_text(ROOM FILE HEADER NAME): ROOM/generated/HEADER has engine/ROOM/FILE as the string
# constant NAME.
function(paddle_embed_text room source header name)
  set(file ${CMAKE_SOURCE_DIR}/engine/${room}/${source})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  file(CONFIGURE OUTPUT ${PADDLE_GENERATED_ROOT}/${room}/generated/${header} @ONLY CONTENT [=[
// Made of engine/@room@/@source@.
#pragma once
namespace paddle::@room@ {
inline constexpr char @name@[] = R"TEXT(@text@)TEXT";
}  // namespace paddle::@room@
]=])
endfunction()
function(paddle_room room)
  cmake_parse_arguments(arg "" "EXCLUDE;NEEDS" "DEPENDS;LIBRARIES;SOURCES" ${ARGN})
  if(arg_NEEDS AND NOT ${arg_NEEDS})
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/engine/${room}/*.cc)
  if(arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${arg_EXCLUDE})
  endif()
  add_library(paddle_${room} ${sources} ${arg_SOURCES})
  # As a shared library, a room must not take the name of the module that codegen opens.
  set_target_properties(paddle_${room} PROPERTIES OUTPUT_NAME paddle_room_${room}
    DEFINE_SYMBOL "")  # a macro of its own would keep a room from using the common headers
  target_include_directories(paddle_${room} PUBLIC
    ${CMAKE_SOURCE_DIR}/engine ${PADDLE_GENERATED_ROOT})
  target_link_libraries(paddle_${room} PRIVATE paddle_flags ${arg_LIBRARIES})
  foreach(other IN LISTS arg_DEPENDS)
    if(NOT other IN_LIST PADDLE_ROOMS)
      message(FATAL_ERROR "the room ${room} depends on ${other}, which is not declared before it")
    endif()
    target_link_libraries(paddle_${room} PUBLIC paddle_${other})
  endforeach()
  paddle_use_common_headers(paddle_${room} ${room})
  # Kernels are compiled file by file: what the compiler inlines must not depend on other files.
  # launch and python are small, and give equal names to things in several files.
  if(PADDLE_UNITY AND NOT room MATCHES "^(kernels|launch|python)$")
    paddle_group_sources(paddle_${room} 25 ${sources} ${arg_SOURCES})
    # Programs that only check a section of a config need nothing else of its room.
    set(separate ${sources})
    list(FILTER separate INCLUDE REGEX "_section\\.cc$|/quant_common/observer\\.cc$")
    if(separate)
      set_source_files_properties(${separate} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endif()
  if(room IN_LIST PADDLE_COLD_ROOMS)
    target_compile_options(paddle_${room} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(TARGET paddle_generated)
    add_dependencies(paddle_${room} paddle_generated)
  endif()
  set(PADDLE_ROOMS ${PADDLE_ROOMS} ${room} PARENT_SCOPE)
endfunction()

paddle_room(base EXCLUDE "/engine/base/crypto_module/" LIBRARIES Threads::Threads paddle_fmt ${CMAKE_DL_LIBS}
  $<$<BOOL:${PADDLE_USE_OPENMP}>:OpenMP::OpenMP_CXX>)
# Rooms format with it, too; as a shared library each must name what it needs.
target_link_libraries(paddle_base PUBLIC paddle_fmt)
# tensor comes first: the others use its compiled common headers.
paddle_room(tensor DEPENDS base)
# The C structs that devices and kernels share with plug-ins.
target_include_directories(paddle_tensor PUBLIC ${CMAKE_SOURCE_DIR}/include)
paddle_room(config DEPENDS base LIBRARIES yaml-cpp nlohmann_json::nlohmann_json)
paddle_room(comm DEPENDS base tensor EXCLUDE "/engine/comm/(gloo|grpc|mpi)/")
paddle_room(launch DEPENDS base comm)
paddle_room(op_schema DEPENDS base LIBRARIES yaml-cpp EXCLUDE "/engine/op_schema/opgen/")
paddle_add_opgen()
paddle_room(ops DEPENDS base tensor
  SOURCES ${PADDLE_GENERATED_OPS_SOURCES})
paddle_room(ir DEPENDS base tensor ops)
paddle_room(formats DEPENDS base tensor
  LIBRARIES ZLIB::ZLIB PNG::PNG JPEG::JPEG TIFF::TIFF paddle_webp paddle_webpdemux
            nlohmann_json::nlohmann_json protobuf::libprotobuf-lite paddle_pcre2
  SOURCES ${PADDLE_WIRE_SOURCES} EXCLUDE "/engine/formats/(hdf5|sound|compressed)/module/")
# Kernels of GPUs are text that is compiled at run time.
paddle_embed_text(kernels ../tensor/box_muller-inl.h box_muller.h kBoxMuller)
paddle_embed_text(kernels elementwise/special_functions-inl.h special_functions.h kSpecialFunctions)
foreach(text alignment attend attention channels complex convolution copy count create edges gather group index math matmul pool prelude random recurrent rows
        scalar select sequences sort special update)
  string(SUBSTRING ${text} 0 1 first)
  string(TOUPPER ${first} first)
  string(SUBSTRING ${text} 1 -1 rest)
  paddle_embed_text(kernels cuda/device/${text}.cuh cuda_${text}.h kCuda${first}${rest})
endforeach()
paddle_room(kernels DEPENDS base tensor ops
  EXCLUDE "/engine/kernels/linalg/module/"
  LIBRARIES paddle_highway paddle_dnnl m SOURCES ${PADDLE_GENERATED_KERNEL_SOURCES})
paddle_room(io_kernels DEPENDS base ops comm formats
  SOURCES ${PADDLE_GENERATED_IO_KERNEL_SOURCES})
paddle_room(autograd DEPENDS base tensor ops ir)
paddle_room(compiler DEPENDS base tensor ops ir kernels
  EXCLUDE "/engine/compiler/codegen/llvm/")
paddle_room(partition DEPENDS base tensor ops comm ir)
paddle_room(runtime DEPENDS base tensor ops ir kernels io_kernels compiler formats)
paddle_room(metrics DEPENDS base tensor)
paddle_room(optim DEPENDS base config tensor ops)
paddle_room(tables DEPENDS base tensor formats kernels optim LIBRARIES nlohmann_json::nlohmann_json)
paddle_room(decoding DEPENDS base)
paddle_room(text DEPENDS base formats
  LIBRARIES nlohmann_json::nlohmann_json paddle_utf8proc paddle_pcre2)
paddle_room(onnx DEPENDS base tensor ops ir autograd compiler runtime formats decoding
  LIBRARIES paddle_pcre2)
paddle_embed_text(paddle_program table.rules table.h kProgramRules)
paddle_room(paddle_program DEPENDS base tensor ops formats onnx)
paddle_room(lang DEPENDS base config tensor ops ir autograd runtime
  LIBRARIES nlohmann_json::nlohmann_json)
paddle_room(graph DEPENDS base config tensor formats LIBRARIES nlohmann_json::nlohmann_json)
paddle_room(data DEPENDS base config tensor formats text graph
  LIBRARIES nlohmann_json::nlohmann_json)
# Rows of tables are found, sent and added in each step.
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/engine/program/memory_table.cc ${CMAKE_SOURCE_DIR}/engine/ps/merge.cc
  ${CMAKE_SOURCE_DIR}/engine/tables/record_table.cc PROPERTIES
  COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>"
  SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
# Their loops are for the auto-vectorizer, as those of kernels are.
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/engine/data/transforms/resample.cc ${CMAKE_SOURCE_DIR}/engine/data/transforms.cc PROPERTIES
  COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>;-fno-math-errno;-fno-trapping-math"
  SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
paddle_room(hub DEPENDS base config data EXCLUDE "/engine/hub/module/"
  LIBRARIES nlohmann_json::nlohmann_json)
paddle_room(profile DEPENDS base ops runtime LIBRARIES nlohmann_json::nlohmann_json)
paddle_room(quant_common DEPENDS base config tensor ops runtime lang)
paddle_room(program
  DEPENDS base config tensor ops ir autograd compiler runtime formats onnx paddle_program lang data
          quant_common optim tables
  LIBRARIES nlohmann_json::nlohmann_json)
paddle_room(plugin
  DEPENDS base config comm op_schema tensor ops ir autograd compiler partition runtime lang metrics
          optim data program)
target_compile_definitions(paddle_plugin PRIVATE PADDLE_VERSION="${PROJECT_VERSION}")
paddle_room(ps DEPENDS base comm program tables)
paddle_room(convert DEPENDS base config tensor ops runtime formats onnx program
  LIBRARIES nlohmann_json::nlohmann_json)
paddle_room(infer DEPENDS base tensor ir runtime formats decoding text onnx data program
  LIBRARIES nlohmann_json::nlohmann_json)
paddle_room(train
  DEPENDS base config tensor ops ir autograd compiler comm partition runtime formats metrics optim
          tables lang plugin data program ps convert quant_common infer
  LIBRARIES nlohmann_json::nlohmann_json)
paddle_room(llm DEPENDS base config tensor ops ir runtime formats decoding text program convert)
paddle_embed_text(serve chat_page.html chat_page.h kChatPage)
paddle_room(serve
  DEPENDS base config tensor runtime formats text onnx data program infer llm
  LIBRARIES nlohmann_json::nlohmann_json)
paddle_room(inspect DEPENDS base tensor ops ir autograd compiler runtime formats onnx profile
  LIBRARIES nlohmann_json::nlohmann_json)
# `paddle plugin new` writes these examples.
paddle_embed_text(conformance ../../plugins/ring/ring.cc example_transport.h kExampleTransport)
paddle_embed_text(conformance ../../plugins/file_rows/file_rows.cc example_table.h kExampleTable)
paddle_embed_text(conformance ../../plugins/fvecs/fvecs.cc example_reader.h kExampleReader)
paddle_embed_text(conformance ../../plugins/relay/relay.c example_device.h kExampleDevice)
paddle_embed_text(conformance ../../plugins/scalar_loops/scalar_loops.cc example_compiler.h
  kExampleCompiler)
paddle_embed_text(conformance ../../plugins/train_parts/train_parts.plugin.yaml
  example_train_parts.h kExampleTrainParts)
paddle_room(conformance
  DEPENDS base config comm tensor ops ir autograd compiler partition runtime optim metrics data
          program plugin inspect)
paddle_room(exporter
  DEPENDS base tensor ops ir runtime data formats onnx lang program inspect train
  LIBRARIES nlohmann_json::nlohmann_json)

paddle_room(quant
  DEPENDS base config tensor ops ir autograd compiler runtime formats metrics text onnx program
          train infer llm quant_common
  LIBRARIES Eigen3::Eigen nlohmann_json::nlohmann_json)

paddle_room(tune
  DEPENDS base config tensor ops ir compiler partition runtime formats data program train infer
          llm
  LIBRARIES nlohmann_json::nlohmann_json)

paddle_room(sections DEPENDS data graph quant_common serve train tune)

paddle_room(api
  DEPENDS base config comm formats tensor ops autograd compiler runtime onnx text program train llm sections
  LIBRARIES nlohmann_json::nlohmann_json)

# The implementation of include/paddle; cmake/install.cmake makes the shared library of it.
set_target_properties(paddle_api PROPERTIES CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON)
target_compile_definitions(paddle_api PRIVATE PADDLE_BUILDING_LIBRARY)
target_include_directories(paddle_api PUBLIC
  ${CMAKE_SOURCE_DIR}/include ${PADDLE_GENERATED_ROOT}/include)
configure_file(${CMAKE_SOURCE_DIR}/include/paddle/version.h.in
  ${PADDLE_GENERATED_ROOT}/include/paddle/version.h @ONLY)

# The configs that recipes fill in, as strings.
set(PADDLE_RECIPE_TEXTS "")
file(GLOB recipe_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/engine/recipes/templates/*.yaml)
foreach(recipe_file IN LISTS recipe_files)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${recipe_file})
  get_filename_component(recipe_name ${recipe_file} NAME_WE)
  file(READ ${recipe_file} recipe_text)
  string(APPEND PADDLE_RECIPE_TEXTS
    "    {\"${recipe_name}\", R\"YAML(${recipe_text})YAML\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${PADDLE_GENERATED_ROOT}/recipes/generated/templates.h @ONLY CONTENT [=[
// Made of engine/recipes/templates.
#pragma once
#include <utility>
namespace paddle::recipes {
inline constexpr std::pair<const char*, const char*> kTemplates[] = {
@PADDLE_RECIPE_TEXTS@};
}  // namespace paddle::recipes
]=])
paddle_room(recipes DEPENDS base config formats text data)

add_library(paddle_engine INTERFACE)
foreach(room IN LISTS PADDLE_ROOMS)
  target_link_libraries(paddle_engine INTERFACE paddle_${room})
endforeach()

# Not a part of the programs; cmake/python.cmake makes the extension of it.
paddle_room(python
  DEPENDS base config comm tensor ops ir autograd runtime formats lang optim program data train sections
          exporter plugin api
  LIBRARIES Python3::Module NEEDS PADDLE_PYTHON_FOUND)
if(TARGET paddle_python)
  set_target_properties(paddle_python PROPERTIES CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  # The public headers without the names that the engine has, too.
  target_compile_definitions(paddle_python PRIVATE PADDLE_BUILDING_LIBRARY)
endif()

target_compile_definitions(paddle_base PRIVATE PADDLE_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
target_compile_definitions(paddle_compiler PRIVATE PADDLE_GENERATOR="${PADDLE_GENERATOR}"
  $<$<BOOL:${PADDLE_WITH_LLVM}>:PADDLE_WITH_LLVM>)
if(PADDLE_WITH_LLVM)
  add_dependencies(paddle_compiler paddle_codegen_module)
endif()
add_dependencies(paddle_kernels paddle_lapack_module)
foreach(module gloo grpc mpi)
  if(TARGET paddle_${module}_module)
    add_dependencies(paddle_comm paddle_${module}_module)
  endif()
endforeach()
foreach(module hdf5 sound archive)
  if(TARGET paddle_${module}_module)
    add_dependencies(paddle_formats paddle_${module}_module)
  endif()
endforeach()
if(TARGET paddle_crypto_module)
  add_dependencies(paddle_base paddle_crypto_module)
endif()
if(TARGET paddle_http_module)
  add_dependencies(paddle_hub paddle_http_module)
endif()
target_compile_definitions(paddle_train PRIVATE PADDLE_VERSION="${PROJECT_VERSION}")
if(PADDLE_USE_OPENMP)
  target_compile_definitions(paddle_base PRIVATE PADDLE_USE_OPENMP=1)
endif()

# Kernels rely on the auto-vectorizer, and Highway compiles each *_simd.cc for three instruction
# sets: the x86-64 baseline, AVX2 and AVX-512.
target_compile_options(paddle_kernels PRIVATE
  $<$<CONFIG:Release>:-O3> -fno-math-errno -fno-trapping-math)
# Those of GPUs compute nothing on the CPU.
if(PADDLE_UNITY)
  get_target_property(sources paddle_kernels SOURCES)
  list(FILTER sources INCLUDE REGEX "/engine/kernels/cuda/")
  paddle_group_sources(paddle_kernels 16 ${sources})
endif()
# Only processors without AVX2 run it, and -O3 triples its compile time.
set_source_files_properties(${CMAKE_SOURCE_DIR}/engine/kernels/packed/tiles_plain.cc PROPERTIES
  COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>")
target_compile_definitions(paddle_kernels PRIVATE
  HWY_DISABLED_TARGETS=\(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL\))
