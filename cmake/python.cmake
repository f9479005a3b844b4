# The Python package `paddle_toolchain`: an extension on Python's limited API, so that one file
# serves 3.11 and all later versions, and modules in Python over it. It is built in build/python, from
# where it can be imported with PYTHONPATH; scripts/make-wheel packs it.
if(NOT PADDLE_PYTHON_FOUND)
  return()
endif()

set(PADDLE_PYTHON_FOLDER ${CMAKE_BINARY_DIR}/python/paddle_toolchain)
add_library(paddle_python_module MODULE $<TARGET_OBJECTS:paddle_python>)
set_target_properties(paddle_python_module PROPERTIES
  PREFIX "" OUTPUT_NAME _paddle SUFFIX ".abi3.so"
  LIBRARY_OUTPUT_DIRECTORY ${PADDLE_PYTHON_FOLDER}
  BUILD_RPATH "$ORIGIN/libs"
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/python.map)
get_target_property(python_rooms paddle_python LINK_LIBRARIES)
target_link_libraries(paddle_python_module PRIVATE ${python_rooms})
# A wheel has the libraries that the extension needs in libs/. The older kind of path holds for what
# these need in turn.
target_link_options(paddle_python_module PRIVATE
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/python.map
  -Wl,--disable-new-dtags)

# Copied next to it: the modules in Python, and the families of language models.
set(python_copies "")
function(copy_to_python folder pattern to)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/${pattern})
  foreach(file IN LISTS files)
    add_custom_command(OUTPUT ${to}/${file}
      COMMAND ${CMAKE_COMMAND} -E copy ${folder}/${file} ${to}/${file}
      DEPENDS ${folder}/${file} VERBATIM)
    list(APPEND python_copies ${to}/${file})
  endforeach()
  set(python_copies ${python_copies} PARENT_SCOPE)
endfunction()
copy_to_python(${CMAKE_SOURCE_DIR}/engine/python/paddle_toolchain *.py ${PADDLE_PYTHON_FOLDER})
copy_to_python(${CMAKE_SOURCE_DIR}/models/llm *.yaml ${PADDLE_PYTHON_FOLDER}/models/llm)
file(CONFIGURE OUTPUT ${PADDLE_PYTHON_FOLDER}/_version.py CONTENT
  "__version__ = \"${PROJECT_VERSION}\"\n")
# Type stubs, from the schema of the operations and the modules as they are.
set(python_stubs "")
if(NOT PADDLE_SANITIZE)  # the extension is imported
  set(python_stubs ${PADDLE_PYTHON_FOLDER}/py.typed)
  add_custom_command(OUTPUT ${python_stubs}
    COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/engine/python/make_stubs.py
            ${CMAKE_BINARY_DIR}/python
    DEPENDS paddle_python_module ${python_copies} ${PADDLE_PYTHON_FOLDER}/_version.py
            ${CMAKE_SOURCE_DIR}/engine/python/make_stubs.py VERBATIM)
endif()
add_custom_target(python ALL DEPENDS paddle_python_module ${python_copies} ${python_stubs})
# Where the extension looks for the engine's modules.
file(CREATE_LINK ${CMAKE_LIBRARY_OUTPUT_DIRECTORY} ${CMAKE_BINARY_DIR}/python/lib SYMBOLIC)
set_target_properties(paddle_lapack_module PROPERTIES BUILD_RPATH "$ORIGIN/libs")
if(TARGET paddle_codegen_module)  # a wheel of its own
  set_target_properties(paddle_codegen_module PROPERTIES BUILD_RPATH "$ORIGIN/codegen_libs")
  target_link_options(paddle_codegen_module PRIVATE -Wl,--disable-new-dtags)
endif()
