// Any bytes as an NPZ file, and as the NPY file that may stand by itself: all arrays are read.

#include "formats/npz.h"
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  const std::string path = fuzz::input_file({data, size}, "x.npz");
  fuzz::expect_documented_end([&] {
    const formats::NpzReader reader(path);
    for (const std::string& name : reader.names())
      fuzz::expect_documented_end([&] {
        if (reader.header(name).dtype == DType::kString)
          reader.read_strings(name);
        else
          fuzz::read_all(reader.read(name));
      });
  });
  fuzz::expect_documented_end([&] { fuzz::read_all(formats::read_npy(path)); });
  return 0;
}
