# paddle_module(NAME SOURCES file... INCLUDES folder... LIBRARIES target...)
# Makes lib/libpaddle_NAME.so, an optional part of the engine that base/module.h opens on first use.
# It exports only what its sources mark as visible, and links nothing of ours.
function(paddle_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;INCLUDES;LIBRARIES" ${ARGN})
  set(target paddle_${name}_module)
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME paddle_${name} CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/engine)
  target_include_directories(${target} SYSTEM PRIVATE ${arg_INCLUDES})
  target_link_libraries(${target} PRIVATE paddle_flags ${arg_LIBRARIES})
endfunction()
