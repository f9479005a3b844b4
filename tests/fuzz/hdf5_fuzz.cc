// Any bytes as an HDF5 file: its datasets and their numbers.

#include "formats/hdf5/reader.h"
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  fuzz::expect_documented_end([&] {
    const formats::Hdf5Reader file(fuzz::input_file({data, size}, "x.h5"));
    for (size_t i = 0; i < file.datasets().size(); ++i)
      fuzz::expect_documented_end([&] { fuzz::read_all(file.read(i)); });
  });
  return 0;
}
