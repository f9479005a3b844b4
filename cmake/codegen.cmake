# lib/libpaddle_codegen.so: engine/compiler/codegen/llvm, opened by the room compiler when there is a
# fusion group to compile. It links LLVM and nothing of ours.
file(GLOB PADDLE_GENERATOR_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/engine/compiler/codegen/llvm/*)
# Cached code is valid only for the generator that produced it, so the key includes its sources.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PADDLE_GENERATOR_FILES})
set(generator_hashes ${LLVM_LIBRARY})
foreach(file IN LISTS PADDLE_GENERATOR_FILES)
  file(SHA256 ${file} hash)
  string(APPEND generator_hashes ${hash})
endforeach()
string(SHA256 PADDLE_GENERATOR "${generator_hashes}")
string(SUBSTRING ${PADDLE_GENERATOR} 0 16 PADDLE_GENERATOR)

if(PADDLE_WITH_LLVM)
  list(FILTER PADDLE_GENERATOR_FILES INCLUDE REGEX "\\.cc$")
  add_library(paddle_codegen_module MODULE ${PADDLE_GENERATOR_FILES})
  set_target_properties(paddle_codegen_module PROPERTIES
    OUTPUT_NAME paddle_codegen CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(paddle_codegen_module PRIVATE ${CMAKE_SOURCE_DIR}/engine)
  target_include_directories(paddle_codegen_module SYSTEM PRIVATE ${LLVM_C_INCLUDE})
  target_link_libraries(paddle_codegen_module PRIVATE paddle_flags ${LLVM_LIBRARY})
endif()
