# For projects of plug-ins, by find_package(paddle COMPONENTS plugin): headers and flags in
# paddle::plugin, and a function that builds a plug-in.

if(NOT TARGET paddle::plugin)
  add_library(paddle::plugin INTERFACE IMPORTED)
  set_target_properties(paddle::plugin PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${PADDLE_PLUGIN_INCLUDE}"
    INTERFACE_COMPILE_OPTIONS
      "-fvisibility=hidden;$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>"
    INTERFACE_LINK_OPTIONS
      "-Wl,-z,defs;-Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/paddle-plugin.map")
endif()

# paddle_add_plugin(NAME SOURCES file… [SCHEMA file.yaml] [CHECK quick|full] [KEYS key=value…])
#
# Builds NAME.so, where NAME is the name that the plug-in states. SCHEMA: a header NAME_schema.h
# with the file as the string NAME_schema. CHECK: a test that runs `paddle plugin check`, with the
# KEYS of the data that readers are checked with.
function(paddle_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 plugin "" "SCHEMA;CHECK" "SOURCES;KEYS")
  if(plugin_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "paddle_add_plugin(${name}): unknown argument ${plugin_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT plugin_SOURCES)
    message(FATAL_ERROR "paddle_add_plugin(${name}): SOURCES are missing")
  endif()
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "paddle_add_plugin(${name}): a name has lower-case letters, digits and _")
  endif()
  add_library(${name} MODULE ${plugin_SOURCES})
  target_link_libraries(${name} PRIVATE paddle::plugin)
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so" CXX_STANDARD 20
    CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF C_STANDARD 11)
  if(plugin_SCHEMA)
    get_filename_component(schema "${plugin_SCHEMA}" ABSOLUTE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${schema}")
    # Line by line, since compilers limit how long a string may be. A list of CMake would split the
    # text at semicolons.
    file(READ "${schema}" text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
    set(header "${CMAKE_CURRENT_BINARY_DIR}/${name}_schema/${name}_schema.h")
    file(CONFIGURE OUTPUT "${header}" @ONLY
      CONTENT "static const char @name@_schema[] =\n    \"@text@\";\n")
    target_include_directories(${name} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${name}_schema")
  endif()
  if(plugin_CHECK)
    if(NOT plugin_CHECK MATCHES "^(quick|full)$")
      message(FATAL_ERROR "paddle_add_plugin(${name}): CHECK is quick or full, not ${plugin_CHECK}")
    endif()
    set(options "")
    if(plugin_CHECK STREQUAL "quick")
      set(options --quick)
    endif()
    foreach(key IN LISTS plugin_KEYS)
      list(APPEND options --key "${key}")
    endforeach()
    add_test(NAME ${name}.check
      COMMAND "${PADDLE_PROGRAM}" plugin check "$<TARGET_FILE:${name}>" ${options})
  endif()
endfunction()
