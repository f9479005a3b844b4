# One program per file of cli/: paddle_train.cc becomes bin/paddle-train. A file whose name begins
# with `common` is shared by all of them.
file(GLOB cli_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cli/paddle*.cc)
file(GLOB cli_common CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cli/common*.cc)
add_custom_target(tools)
set(PADDLE_PROGRAMS "")
if(cli_common)
  add_library(paddle_cli_common STATIC ${cli_common})
  # Most of a command is reading its arguments.
  target_compile_options(paddle_cli_common PRIVATE $<$<CONFIG:Release>:-O1>)
  target_link_libraries(paddle_cli_common PUBLIC paddle_engine CLI11::CLI11
    nlohmann_json::nlohmann_json PRIVATE paddle_flags)
  # Public: a program that reuses its compiled headers must have the same macros.
  target_compile_definitions(paddle_cli_common PUBLIC PADDLE_VERSION="${PROJECT_VERSION}"
    $<$<BOOL:${PADDLE_WITH_CUDA}>:PADDLE_WITH_CUDA> $<$<BOOL:${PADDLE_WITH_LLVM}>:PADDLE_WITH_LLVM>)
  paddle_compile_headers(paddle_cli_common command_headers.h)
endif()
foreach(source IN LISTS cli_sources)
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "_" "-" program ${name})
  add_executable(${program} ${source})
  target_compile_options(${program} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_link_libraries(${program} PRIVATE
    paddle_flags paddle_engine CLI11::CLI11 nlohmann_json::nlohmann_json)
  if(cli_common)
    target_link_libraries(${program} PRIVATE paddle_cli_common)
    paddle_reuse_headers(${program} paddle_cli_common)
  endif()
  add_dependencies(tools ${program})
  list(APPEND PADDLE_PROGRAMS ${program})
endforeach()
