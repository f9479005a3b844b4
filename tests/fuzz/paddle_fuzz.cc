// Any bytes as a program of PaddlePaddle, in both forms, and as its parameters.

#include "base/error.h"
#include "formats/paddle_params.h"
#include "fuzz/fuzz_target.h"
#include "paddle_program/register.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  for (const char* name : {"x.pdmodel", "x.json"})
    fuzz::expect_documented_end([&] {
      try {
        paddle_program::import_program(fuzz::input_file({data, size}, name));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kConfig) throw;  // operations that are not there
      }
    });
  fuzz::expect_documented_end([&] {
    const formats::PaddleParams file(fuzz::input_file({data, size}, "y.pdiparams"));
    for (size_t i = 0; i < file.parameters().size(); ++i)
      fuzz::expect_documented_end([&] { fuzz::read_all(file.read(i)); });
  });
  return 0;
}
