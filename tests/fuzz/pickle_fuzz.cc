// Any bytes as a weight file of PyTorch or PaddlePaddle, as an archive and as a plain pickle.

#include "formats/pickle/weights.h"
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  fuzz::expect_documented_end([&] {
    const formats::pickle::WeightFile file(fuzz::input_file({data, size}, "x.pth"));
    for (size_t i = 0; i < file.tensors().size(); ++i)
      fuzz::expect_documented_end([&] { fuzz::read_all(file.read(i)); });
  });
  return 0;
}
