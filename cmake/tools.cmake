# bin/paddle, the program of all commands, and a link bin/paddle-NAME to it for each file
# cli/paddle_NAME.cc. The program knows by the name that it was started with which command is meant.
file(GLOB cli_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cli/*.cc)
# Compiled once for all commands; their headers are those of the library.
add_library(paddle_cli OBJECT ${cli_sources})
# Most of a command is reading its arguments.
target_compile_options(paddle_cli PRIVATE $<$<CONFIG:Release>:-O1>)
target_link_libraries(paddle_cli PUBLIC paddle_engine CLI11::CLI11 nlohmann_json::nlohmann_json
  PRIVATE paddle_flags)
target_compile_definitions(paddle_cli PRIVATE PADDLE_VERSION="${PROJECT_VERSION}"
  $<$<BOOL:${PADDLE_WITH_LLVM}>:PADDLE_WITH_LLVM>)
paddle_reuse_headers(paddle_cli paddle_config)
if(PADDLE_UNITY)
  paddle_group_sources(paddle_cli 20 ${cli_sources})
endif()
add_executable(paddle $<TARGET_OBJECTS:paddle_cli>)
target_link_libraries(paddle PRIVATE paddle_flags paddle_engine)

set(PADDLE_LINKS "")
file(GLOB command_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cli/paddle_*.cc)
foreach(source IN LISTS command_sources)
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "_" "-" link ${name})
  list(APPEND PADDLE_LINKS ${link})
  # The link is made with the program, so that `cmake --build build --target paddle-train` works.
  add_custom_target(${link} DEPENDS paddle)
  add_custom_command(TARGET paddle POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink paddle ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${link}
    VERBATIM)
endforeach()
add_custom_target(tools DEPENDS paddle)
