# tests/<room>/<subject>_test.cc       one program test_<room> that links that room only
# tests/<folder>/*_test.cc             one program test_<folder> that links everything
# tests/<folder>/*.sh                  one test each; PADDLE_BIN names the folder of the programs
# tests/cli/<subject>/*.sh             in the same way; the test is cli.<name>, whatever the subject
# tests/fuzz/<subject>_fuzz.cc         one program fuzz_<subject>; a test replays its seeds
# The folder is the CTest label. Tests run in the project's root.
find_package(GTest REQUIRED)
include(GoogleTest)

file(GLOB support_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.cc)
add_library(paddle_test_support STATIC ${support_sources})
target_include_directories(paddle_test_support PUBLIC ${CMAKE_SOURCE_DIR}/tests)
target_include_directories(paddle_test_support PRIVATE ${CMAKE_SOURCE_DIR}/engine)
target_link_libraries(paddle_test_support PUBLIC GTest::gtest PRIVATE paddle_flags)
paddle_compile_headers(paddle_test_support test_headers.h)

# Compiled groups are kept with the build, not with the user's.
set(PADDLE_TEST_CACHE "PADDLE_CACHE_DIR=set:${CMAKE_BINARY_DIR}/test-cache")

function(paddle_add_test program label sources)
  add_executable(${program} ${sources})
  target_link_libraries(${program} PRIVATE
    ${ARGN} paddle_flags paddle_test_support nlohmann_json::nlohmann_json
    ZLIB::ZLIB PNG::PNG JPEG::JPEG)
  if(NOT program STREQUAL "test_api")  # whose headers have other types with the same names
    paddle_reuse_headers(${program} paddle_test_support)
  endif()
  gtest_discover_tests(${program}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 120
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    PROPERTIES LABELS ${label} TIMEOUT 600
               ENVIRONMENT "PADDLE_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
               ENVIRONMENT_MODIFICATION "${PADDLE_TEST_CACHE}")
endfunction()

set(PADDLE_CASE_FOLDERS op grad passes model cli docs gpu interop install python slow examples)

# Rooms that the tests of a room use besides those that it depends on.
set(PADDLE_TEST_ROOMS_autograd paddle_runtime)
set(PADDLE_TEST_ROOMS_compiler paddle_runtime)
set(PADDLE_TEST_ROOMS_optim paddle_runtime)
set(PADDLE_TEST_ROOMS_partition paddle_comm paddle_runtime)
set(PADDLE_TEST_ROOMS_io_kernels paddle_runtime)
set(PADDLE_TEST_ROOMS_runtime paddle_autograd)
# The rooms whose unit tests and fuzz seeds run under sanitizers with every change: those that read
# files or exchange messages. The target sanitized_tests builds them; a program that is not built
# has no tests, and the label `sanitized` chooses the fuzz seeds.
set(PADDLE_SANITIZED_ROOMS base tensor config comm formats metrics decoding tables text graph data ps)
add_custom_target(sanitized_tests)
foreach(room IN LISTS PADDLE_ROOMS)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${room}/*_test.cc)
  if(sources)
    paddle_add_test(test_${room} unit "${sources}" paddle_${room} ${PADDLE_TEST_ROOMS_${room}})
    if(room IN_LIST PADDLE_SANITIZED_ROOMS)
      add_dependencies(sanitized_tests test_${room})
    endif()
  endif()
endforeach()

# Loops of older instruction sets than the machine's. Builds with sanitizers may lack the program.
if(NOT PADDLE_SANITIZE)
  foreach(isa avx2 sse4)
    add_test(NAME llm.packed_weights_${isa} COMMAND test_llm --gtest_filter=*PackedWeight*
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(llm.packed_weights_${isa} PROPERTIES LABELS unit TIMEOUT 600
      ENVIRONMENT "PADDLE_MAX_ISA=${isa}")
  endforeach()
endif()

foreach(folder IN LISTS PADDLE_CASE_FOLDERS)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*_test.cc)
  if(sources)
    paddle_add_test(test_${folder}_cases ${folder} "${sources}" paddle_engine)
  endif()
  set(patterns ${CMAKE_SOURCE_DIR}/tests/${folder}/*.sh)
  if(folder STREQUAL "cli")
    list(APPEND patterns ${CMAKE_SOURCE_DIR}/tests/cli/*/*.sh)
  endif()
  file(GLOB shell_tests CONFIGURE_DEPENDS ${patterns})
  foreach(script IN LISTS shell_tests)
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME ${folder}.${name} COMMAND bash ${script}
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set(timeout 900)
    if(folder STREQUAL "slow")
      set(timeout 3600)
    endif()
    set_tests_properties(${folder}.${name} PROPERTIES LABELS ${folder} TIMEOUT ${timeout}
      SKIP_RETURN_CODE 77
      ENVIRONMENT "PADDLE_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};PADDLE_STRICT=1"
      ENVIRONMENT_MODIFICATION "${PADDLE_TEST_CACHE}")
  endforeach()
endforeach()
# It checks some fifty plug-ins.
set_tests_properties(cli.faults PROPERTIES LABELS "cli;slow")
# The longest test begins first, so that it does not run alone at the end.
if(TEST op.cuda)
  set_tests_properties(op.cuda PROPERTIES COST 1000 TIMEOUT 1800)
endif()

# Fuzz targets. With PADDLE_FUZZ they are libFuzzer's programs; otherwise replay.cc runs them over
# the seeds, which a script writes, and over the files that fuzzing has found.
set(PADDLE_FUZZ_ROOMS_safetensors formats)
set(PADDLE_FUZZ_ROOMS_npz formats)
set(PADDLE_FUZZ_ROOMS_onnx onnx)
add_custom_target(fuzz_targets)
set(PADDLE_FUZZ_ROOMS_tokenizer text)
set(PADDLE_FUZZ_ROOMS_gguf text)
set(PADDLE_FUZZ_ROOMS_jinja text)
set(PADDLE_FUZZ_ROOMS_pickle formats)
set(PADDLE_FUZZ_ROOMS_hdf5 formats)
set(PADDLE_FUZZ_ROOMS_paddle paddle_program)
set(PADDLE_FUZZ_ROOMS_grammar text)
set(PADDLE_FUZZ_ROOMS_sound formats)
set(PADDLE_FUZZ_ROOMS_records data)
set(PADDLE_FUZZ_ROOMS_dataset data)
set(PADDLE_FUZZ_ROOMS_image formats)
set(PADDLE_FUZZ_ROOMS_graph graph)
set(PADDLE_FUZZ_ROOMS_module ir)
set(PADDLE_FUZZ_ROOMS_config config)
set(PADDLE_FUZZ_ROOMS_program lang)
set(PADDLE_FUZZ_ROOMS_rules compiler)
set(PADDLE_FUZZ_ROOMS_http formats)
set(PADDLE_FUZZ_ROOMS_rendezvous comm)
set(PADDLE_FUZZ_ROOMS_flight comm)
set(PADDLE_FUZZ_ROOMS_plugin plugin)
set(PADDLE_FUZZ_ROOMS_segments tables)
set(PADDLE_FUZZ_ROOMS_frames ps)
set(PADDLE_FUZZ_ROOMS_order ps)
set(PADDLE_FUZZ_ROOMS_table_import train)
foreach(subject safetensors npz onnx tokenizer gguf jinja pickle hdf5 paddle grammar sound records
        image module config program rules http dataset rendezvous plugin segments graph frames order
        table_import flight)
  set(program fuzz_${subject})
  add_executable(${program} tests/fuzz/${subject}_fuzz.cc tests/fuzz/fuzz_target.cc)
  target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${program} PRIVATE
    paddle_${PADDLE_FUZZ_ROOMS_${subject}} paddle_tensor paddle_flags)
  add_dependencies(fuzz_targets ${program})
  set(labels fuzz)
  if(subject STREQUAL "plugin")
    target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  endif()
  if(subject STREQUAL "http")  # without the language models of its room
    target_sources(${program} PRIVATE engine/serve/http_reader.cc
      engine/serve/nested_list.cc engine/serve/predict_request.cc)
    target_link_libraries(${program} PRIVATE nlohmann_json::nlohmann_json)
  endif()
  # On some damaged files the HDF5 library frees addresses that it has not allocated, in H5Dopen2. A
  # sanitizer ends the replay there, before our code is reached.
  if(subject STREQUAL "hdf5" AND PADDLE_SANITIZE AND NOT PADDLE_FUZZ)
    target_sources(${program} PRIVATE tests/fuzz/replay.cc)
    continue()
  endif()
  if(PADDLE_FUZZ_ROOMS_${subject} IN_LIST PADDLE_SANITIZED_ROOMS)
    list(APPEND labels sanitized)
    add_dependencies(sanitized_tests ${program})
  endif()
  if(PADDLE_FUZZ)
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    if(subject STREQUAL "onnx")
      target_sources(${program} PRIVATE tests/fuzz/protobuf_mutator.cc)
    endif()
  else()
    target_sources(${program} PRIVATE tests/fuzz/replay.cc)
    add_test(NAME fuzz.${subject} COMMAND bash tests/fuzz/replay.bash ${subject}
      $<TARGET_FILE:${program}> WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(fuzz.${subject} PROPERTIES LABELS "${labels}" TIMEOUT 300
      SKIP_RETURN_CODE 77)
  endif()
endforeach()

# The examples with the library in them, so that builds with sanitizers check it as well:
#   cmake --build --preset asan --target example_programs && ctest --preset asan -L examples
enable_language(C)
add_custom_target(example_programs)
file(GLOB example_sources CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/examples/c/*.c ${CMAKE_SOURCE_DIR}/examples/cpp/*.cc)
foreach(source IN LISTS example_sources)
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(language ${source} DIRECTORY)
  get_filename_component(language ${language} NAME)
  set(program example_${language}_${name})
  add_executable(${program} ${source})
  set_target_properties(${program} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(${program} PRIVATE paddle_engine)
  if(PADDLE_SANITIZE)
    target_link_options(${program} PRIVATE -fsanitize=${PADDLE_SANITIZE})
  endif()
  add_dependencies(example_programs ${program})
endforeach()

# Programs of tests/bench, which are not tests; `cmake --build build --target bench_NAME` makes one.
if(TARGET paddle_shared)
  foreach(name eager_calls)
    add_executable(bench_${name} EXCLUDE_FROM_ALL tests/bench/${name}.cc)
    target_link_libraries(bench_${name} PRIVATE paddle_shared paddle_flags)
  endforeach()
endif()

add_executable(bench_table_servers EXCLUDE_FROM_ALL tests/bench/table_servers.cc)
target_link_libraries(bench_table_servers PRIVATE paddle_ps paddle_flags)
add_executable(bench_table_lookups EXCLUDE_FROM_ALL tests/bench/table_lookups.cc)
target_link_libraries(bench_table_lookups PRIVATE paddle_tables paddle_flags)

# Plug-ins that are built with other headers than today's, and one with a device.
set(PADDLE_PLUGIN_CLIENTS ${CMAKE_BINARY_DIR}/plugin_clients)
foreach(client frozen frozen_layout target_minor longer device)
  add_library(plugin_client_${client} MODULE tests/plugin/clients/${client}.cc)
  target_link_libraries(plugin_client_${client} PRIVATE paddle_flags)
  set(headers ${CMAKE_SOURCE_DIR}/include)
  if(client MATCHES "^frozen")
    set(headers ${CMAKE_SOURCE_DIR}/tests/plugin/abi/1.0)
  endif()
  target_include_directories(plugin_client_${client} PRIVATE ${headers})
  set_target_properties(plugin_client_${client} PROPERTIES OUTPUT_NAME ${client} PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${PADDLE_PLUGIN_CLIENTS} CXX_VISIBILITY_PRESET hidden UNITY_BUILD OFF)
  add_dependencies(test_plugin plugin_client_${client})
endforeach()
# A part of each kind, with the headers of each minor version: the frozen ones, and today's for it.
foreach(minor 1 2 3 4 5)
  foreach(headers frozen target)
    set(client ${headers}_1_${minor})
    add_library(plugin_client_${client} MODULE tests/plugin/clients/every_kind.c)
    target_compile_options(plugin_client_${client} PRIVATE
      -Wall -Wextra -Wno-missing-field-initializers -Werror)
    target_compile_definitions(plugin_client_${client} PRIVATE NAME="${client}")
    if(headers STREQUAL "frozen")
      target_include_directories(plugin_client_${client} PRIVATE
        ${CMAKE_SOURCE_DIR}/tests/plugin/abi/1.${minor})
    else()
      target_include_directories(plugin_client_${client} PRIVATE ${CMAKE_SOURCE_DIR}/include)
      target_compile_definitions(plugin_client_${client} PRIVATE PADDLE_PLUGIN_TARGET_MINOR=${minor})
    endif()
    set_target_properties(plugin_client_${client} PROPERTIES OUTPUT_NAME ${client} PREFIX ""
      LIBRARY_OUTPUT_DIRECTORY ${PADDLE_PLUGIN_CLIENTS} C_VISIBILITY_PRESET hidden C_STANDARD 11
      UNITY_BUILD OFF)
    add_dependencies(test_conformance plugin_client_${client})
  endforeach()
endforeach()
target_sources(test_conformance PRIVATE tests/conformance/exported.cc)
# Examples whose kinds the tests of the conformance suite use.
foreach(example ring file_rows fvecs scalar_loops)
  add_library(plugin_example_${example} MODULE plugins/${example}/${example}.cc)
  target_link_libraries(plugin_example_${example} PRIVATE paddle_flags)
  target_include_directories(plugin_example_${example} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  set_target_properties(plugin_example_${example} PROPERTIES OUTPUT_NAME ${example} PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${PADDLE_PLUGIN_CLIENTS} CXX_VISIBILITY_PRESET hidden UNITY_BUILD OFF)
  add_dependencies(test_conformance plugin_example_${example})
endforeach()
add_library(plugin_example_relay MODULE plugins/relay/relay.c)
target_include_directories(plugin_example_relay PRIVATE ${CMAKE_SOURCE_DIR}/include)
set_target_properties(plugin_example_relay PROPERTIES OUTPUT_NAME relay PREFIX ""
  LIBRARY_OUTPUT_DIRECTORY ${PADDLE_PLUGIN_CLIENTS} C_VISIBILITY_PRESET hidden C_STANDARD 11)
add_dependencies(test_conformance plugin_example_relay)
target_compile_definitions(test_conformance PRIVATE
  PADDLE_PLUGIN_CLIENTS="${PADDLE_PLUGIN_CLIENTS}")
target_compile_definitions(test_plugin PRIVATE PADDLE_PLUGIN_CLIENTS="${PADDLE_PLUGIN_CLIENTS}")

# Stand-ins for the libraries of CUDA, with which tests run the device `cuda` on the CPU.
set(PADDLE_FAKE_CUDA ${CMAKE_BINARY_DIR}/fake_cuda)
add_library(fake_cuda_driver SHARED tests/support/cuda/fake_driver.cc)
add_library(fake_cuda_nvrtc SHARED tests/support/cuda/fake_nvrtc.cc)
add_library(fake_cuda_cublaslt SHARED tests/support/cuda/fake_cublaslt.cc)
add_library(fake_cuda_cudnn SHARED tests/support/cuda/fake_cudnn.cc)
foreach(name driver nvrtc cublaslt cudnn)
  target_link_libraries(fake_cuda_${name} PRIVATE paddle_flags ${CMAKE_DL_LIBS})
  target_include_directories(fake_cuda_${name} PRIVATE engine tests/support/cuda)
  target_compile_definitions(fake_cuda_${name} PRIVATE
    PADDLE_FAKE_CUDA_FOLDER="${PADDLE_FAKE_CUDA}" PADDLE_COMPILER="${CMAKE_CXX_COMPILER}"
    PADDLE_EMULATION_HEADER="${CMAKE_SOURCE_DIR}/tests/support/cuda/emulation.h")
  set_target_properties(fake_cuda_${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PADDLE_FAKE_CUDA} PREFIX "" CXX_VISIBILITY_PRESET hidden
    BUILD_RPATH "" UNITY_BUILD OFF)
endforeach()
add_dependencies(test_runtime fake_cuda_driver fake_cuda_nvrtc fake_cuda_cublaslt
  fake_cuda_cudnn)
set_target_properties(fake_cuda_driver PROPERTIES OUTPUT_NAME libcuda SUFFIX ".so.1")
set_target_properties(fake_cuda_nvrtc PROPERTIES OUTPUT_NAME libnvrtc SUFFIX ".so.13")
set_target_properties(fake_cuda_cublaslt PROPERTIES OUTPUT_NAME libcublasLt SUFFIX ".so.13")
set_target_properties(fake_cuda_cudnn PROPERTIES OUTPUT_NAME libcudnn SUFFIX ".so.9")
