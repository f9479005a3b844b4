# lib/libpaddle_codegen.so: engine/compiler/codegen/llvm, opened by the room compiler when there is a
# fusion group to compile.
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
  paddle_module(codegen SOURCES ${PADDLE_GENERATOR_FILES}
    INCLUDES ${LLVM_C_INCLUDE} LIBRARIES ${LLVM_LIBRARY})
endif()
