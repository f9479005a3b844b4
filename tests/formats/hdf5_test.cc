// HDF5 files against the values that h5py wrote (make_hdf5.py).

#include "formats/hdf5/reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "formats/npz.h"
#include "formats/zip.h"

namespace paddle::formats {
namespace {

const std::string kData = "tests/formats/data/";

TEST(Hdf5, DatasetsHaveTheValuesThatWereWritten) {
  const Hdf5Reader file(kData + "weights.h5");
  const NpzReader golden(kData + "hdf5.npz");
  EXPECT_EQ(file.datasets().size(), golden.names().size());
  for (size_t i = 0; i < file.datasets().size(); ++i) {
    std::string key = file.datasets()[i].name;
    std::ranges::replace(key, '/', '|');
    ASSERT_TRUE(golden.contains(key)) << key;
    const Array array = file.read(i), wanted = golden.read(key);
    ASSERT_EQ(array.dtype, wanted.dtype) << key;
    ASSERT_EQ(array.shape, wanted.shape) << key;
    for (int64_t k = 0; k < array.size(); ++k) ASSERT_EQ(array.number(k), wanted.number(k)) << key;
  }
  std::vector<std::string> others = file.others();
  std::ranges::sort(others);
  EXPECT_EQ(others, (std::vector<std::string>{"pairs", "text"}));
  EXPECT_EQ(file.links(), std::vector<std::string>{"alias"});
}

TEST(Hdf5, FilesOfKerasAreArchivesWithTheWeights) {
  std::ifstream in(kData + "weights.h5", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::string path = testing::TempDir() + "model.keras";
  for (const bool deflate : {false, true}) {
    ZipWriter zip(path);
    const std::span<const std::byte> content = std::as_bytes(std::span(bytes));
    zip.add("model.weights.h5", {&content, 1}, deflate);
    zip.close();
    const Hdf5Reader file(path), plain(kData + "weights.h5");
    ASSERT_EQ(file.datasets().size(), plain.datasets().size());
    for (size_t i = 0; i < file.datasets().size(); ++i) {
      EXPECT_EQ(file.datasets()[i].name, plain.datasets()[i].name);
      const Array a = file.read(i), b = plain.read(i);
      ASSERT_EQ(a.shape, b.shape);
      for (int64_t k = 0; k < a.size(); ++k) ASSERT_EQ(a.number(k), b.number(k));
    }
  }
}

std::string outcome(const std::string& path) {
  try {
    const Hdf5Reader file(path);
    for (size_t i = 0; i < file.datasets().size(); ++i) file.read(i);
    return "read";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kModel);
    return std::string(e.what()).substr(path.size() + 2);
  }
}

TEST(Hdf5, OtherFilesAreRejected) {
  EXPECT_EQ(outcome(kData + "elsewhere.h5"), "the dataset 'outside' is in other files");
  EXPECT_EQ(outcome(kData + "state.pth"),
            "is an archive without model.weights.h5, so not one of Keras");
  EXPECT_EQ(outcome(kData + "net.pdparams"), "is not an HDF5 file, or damaged");
}

TEST(Hdf5, DamagedFilesEndWithAnError) {
  std::ifstream in(kData + "weights.h5", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::string path = testing::TempDir() + "damaged.h5";
  int rejected = 0;
  for (size_t at = 0; at < bytes.size(); at += 97) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x5a);
    std::ofstream(path, std::ios::binary) << changed;
    rejected += outcome(path) != "read" ? 1 : 0;
    std::ofstream(path, std::ios::binary) << bytes.substr(0, at);
    EXPECT_NE(outcome(path), "read") << at;
  }
  EXPECT_GT(rejected, 0);
}

}  // namespace
}  // namespace paddle::formats
