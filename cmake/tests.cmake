# tests/unit/<room>_<subject>_test.cc  one program test_<room> that links that room only
# tests/<folder>/*_test.cc             one program test_<folder> that links everything
# tests/<folder>/*.sh                  one test each; PADDLE_BIN names the folder of the programs
# The folder is the CTest label. Tests run in the project's root.
find_package(GTest REQUIRED)
include(GoogleTest)

file(GLOB support_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.cc)
add_library(paddle_test_support STATIC ${support_sources})
target_include_directories(paddle_test_support PUBLIC ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(paddle_test_support PUBLIC GTest::gtest PRIVATE paddle_flags)

function(paddle_add_test program label sources)
  add_executable(${program} ${sources})
  target_link_libraries(${program} PRIVATE
    ${ARGN} paddle_flags paddle_test_support fmt::fmt yaml-cpp nlohmann_json::nlohmann_json
    ZLIB::ZLIB PNG::PNG JPEG::JPEG GTest::gtest_main)
  gtest_discover_tests(${program}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 120
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    PROPERTIES LABELS ${label} TIMEOUT 600
               ENVIRONMENT "PADDLE_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endfunction()

foreach(room IN LISTS PADDLE_ROOMS)
  string(REPLACE "/" "_" name ${room})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${name}_*_test.cc)
  if(sources)
    paddle_add_test(test_${name} unit "${sources}" paddle_${name})
  endif()
endforeach()

foreach(folder op grad ir model cli interop dist slow gpu)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*_test.cc)
  if(sources)
    paddle_add_test(test_${folder}_cases ${folder} "${sources}" paddle_engine)
  endif()
  file(GLOB shell_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.sh)
  foreach(script IN LISTS shell_tests)
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME ${folder}.${name} COMMAND bash ${script}
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${folder}.${name} PROPERTIES LABELS ${folder} TIMEOUT 900
      SKIP_RETURN_CODE 77 ENVIRONMENT "PADDLE_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  endforeach()
endforeach()
