// Weight files of PyTorch and PaddlePaddle against the values that those wrote (make_pickles.py),
// and pickles that must be rejected.

#include "formats/pickle/pickle.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "formats/npz.h"
#include "formats/paddle_params.h"
#include "formats/pickle/weights.h"

namespace paddle::formats::pickle {
namespace {

const std::string kData = "tests/formats/data/";

std::map<std::string, Array> arrays_of(const WeightFile& file) {
  std::map<std::string, Array> out;
  for (size_t i = 0; i < file.tensors().size(); ++i) out[file.tensors()[i].name] = file.read(i);
  return out;
}

/// The arrays of the file are those of the reference whose names begin with `prefix`.
void expect_values(const std::string& name, const std::string& prefix) {
  SCOPED_TRACE(name);
  const NpzReader golden(kData + "pickles.npz");
  const WeightFile file(kData + name);
  const auto arrays = arrays_of(file);
  size_t found = 0;
  for (const std::string& key : golden.names()) {
    if (!key.starts_with(prefix)) continue;
    ++found;
    const auto it = arrays.find(key.substr(prefix.size()));
    ASSERT_NE(it, arrays.end()) << key;
    const Array& array = it->second;
    const Array wanted = golden.read(key);
    ASSERT_EQ(array.shape, wanted.shape) << key;
    if (array.dtype == DType::kC64) {
      ASSERT_EQ(std::memcmp(array.raw(), wanted.raw(), 16), 0) << key;
      continue;
    }
    EXPECT_EQ(array.dtype, key == "state/bfloat" ? DType::kBF16 : wanted.dtype) << key;
    for (int64_t i = 0; i < array.size(); ++i)
      ASSERT_EQ(array.number(i), wanted.number(i)) << key << " " << i;
  }
  EXPECT_GT(found, 0u);
  EXPECT_EQ(found, arrays.size());
}

TEST(Pickle, FilesOfPyTorch) {
  expect_values("state.pth", "state/");
  expect_values("legacy.pth", "state/");
  expect_values("checkpoint.pt", "checkpoint/");
  expect_values("script.pt", "script/");
  const WeightFile checkpoint(kData + "checkpoint.pt");
  EXPECT_EQ(checkpoint.notes(),
            (std::vector<std::string>{
                "values that are not tensors are left out: numbers (1), strings (1)"}));
}

TEST(Pickle, FilesOfPaddlePaddle) {
  const NpzReader golden(kData + "pickles.npz");
  for (const char* name : {"net.pdparams", "net2.pdparams"}) {
    const auto arrays = arrays_of(WeightFile(kData + name));
    for (const std::string& key : golden.names()) {
      if (!key.starts_with("net/")) continue;
      ASSERT_TRUE(arrays.contains(key.substr(4))) << name << " " << key;
      const Array& array = arrays.at(key.substr(4));
      const Array wanted = golden.read(key);
      ASSERT_EQ(array.shape, wanted.shape);
      for (int64_t i = 0; i < array.size(); ++i)
        ASSERT_EQ(array.number(i), wanted.number(i)) << key;
    }
  }
  EXPECT_FALSE(WeightFile(kData + "net.pdopt").tensors().empty());
}

std::vector<double> numbers_of(const Array& array) {
  std::vector<double> out;
  for (int64_t i = 0; i < array.size(); ++i) out.push_back(array.number(i));
  return out;
}

// make_pickle_forms.py made the files of the next tests.
TEST(Pickle, PaddlePaddleWritesBfloat16AsUint16) {
  const auto arrays = arrays_of(WeightFile(kData + "forms.pdparams"));
  EXPECT_EQ(arrays.at("w").dtype, DType::kBF16);
  EXPECT_EQ(numbers_of(arrays.at("w")), (std::vector<double>{1, 2, -0.5}));
  EXPECT_EQ(arrays.at("b").dtype, DType::kF32);
}

TEST(Pickle, SlicesOfPaddlePaddleAreJoined) {
  const WeightFile file(kData + "slices.pdparams");
  EXPECT_TRUE(file.notes().empty());
  const auto arrays = arrays_of(file);
  EXPECT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays.at("w").shape, (Dims{3, 4}));
  EXPECT_EQ(numbers_of(arrays.at("w")),
            (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(Pickle, ViewsOfPyTorchAreConjugatedAndNegated) {
  const auto arrays = arrays_of(WeightFile(kData + "flags.pt"));
  const Array &conjugate = arrays.at("conj"), &plain = arrays.at("plain");
  EXPECT_EQ(conjugate.complex_number(0), std::complex<double>(1, -2));
  EXPECT_EQ(conjugate.complex_number(1), std::complex<double>(3, 4));
  EXPECT_EQ(plain.complex_number(1), std::complex<double>(3, -4));
  EXPECT_EQ(numbers_of(arrays.at("imag")), (std::vector<double>{-2, 4}));
}

TEST(Pickle, Float8OfPyTorch) {
  const auto arrays = arrays_of(WeightFile(kData + "flags.pt"));
  EXPECT_EQ(arrays.at("e4m3").dtype, DType::kF8E4M3FN);
  EXPECT_EQ(arrays.at("e5m2").dtype, DType::kF8E5M2);
  for (const char* name : {"e4m3", "e5m2"})
    EXPECT_EQ(std::memcmp(arrays.at(name).raw(), "\x38\xc0", 2), 0) << name;
}

TEST(PaddleParams, NamesComeFromTheProgram) {
  const NpzReader golden(kData + "pickles.npz");
  for (const std::string name : {"pir", "program"}) {
    const PaddleParams file(kData + name + ".pdiparams");
    EXPECT_TRUE(file.has_names());
    size_t found = 0;
    for (size_t i = 0; i < file.parameters().size(); ++i) {
      const std::string key = name + "/" + file.parameters()[i].name;
      ASSERT_TRUE(golden.contains(key)) << key;
      const Array array = file.read(i), wanted = golden.read(key);
      ASSERT_EQ(array.shape, wanted.shape) << key;
      for (int64_t k = 0; k < array.size(); ++k)
        ASSERT_EQ(array.number(k), wanted.number(k)) << key;
      ++found;
    }
    EXPECT_EQ(found, 6u);
  }
}

TEST(PaddleParams, DamagedFilesAreRejected) {
  std::ifstream in(kData + "program.pdiparams", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::string path = testing::TempDir() + "damaged.pdiparams";
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    try {
      const PaddleParams file(path);
      EXPECT_LT(file.parameters().size(), 6u);
      EXPECT_FALSE(file.has_names());
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kModel);
    }
  }
}

std::string outcome(const std::string& bytes) {
  const std::string path = testing::TempDir() + "pickle_test.pth";
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    const WeightFile file(path);
    return str(file.tensors().size(), " tensors");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kModel);
    const std::string text = e.what();
    return text.substr(std::min(text.size(), path.size() + 2));
  }
}

TEST(Pickle, NothingIsExecuted) {
  // os.system("echo"), written by hand and as Python's pickle module writes it.
  EXPECT_EQ(outcome("cposix\nsystem\n(S'echo'\ntR."),
            "the pickle calls posix.system, which is not part of tensors, dicts and lists; nothing "
            "was executed");
  EXPECT_EQ(outcome(std::string("\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04"
                                "echo\x85R.",
                                27)),
            "the pickle calls posix.system, which is not part of tensors, dicts and lists; nothing "
            "was executed");
  EXPECT_EQ(outcome("cbuiltins\neval\n(S'1'\nto."),
            "damaged pickle at byte 23: unknown instruction 111");
}

TEST(Pickle, DamagedFilesAreRejected) {
  EXPECT_EQ(outcome(""), "damaged pickle at byte 0: it ends early");
  EXPECT_EQ(outcome("\x80\x04}."), "it holds no tensors");
  EXPECT_EQ(outcome("\x80\x09}."), "damaged pickle at byte 2: it has an unknown protocol");
  EXPECT_EQ(outcome("."), "damaged pickle at byte 1: the stack is empty");
  EXPECT_EQ(outcome("h\x07."), "damaged pickle at byte 2: a value is used before it is made");
  EXPECT_EQ(outcome("X\xff\xff\xff\xff"
                    "a."),
            "damaged pickle at byte 5: it ends early");
  // A list that contains itself.
  EXPECT_EQ(outcome(std::string("]q\0h\0a.", 7)),
            "collections are nested more than 64 deep, or contain themselves");
  // Lists of lists of lists … that would be two to the power of forty numbers.
  std::string bomb = "K\x01q" + std::string(1, '\0');
  for (char i = 0; i < 40; ++i)
    bomb += std::string("]q") + static_cast<char>(i + 1) + "(h" + i + "h" + i + "e";
  EXPECT_EQ(outcome(bomb + "."), "it has more than four million values");
}

TEST(Pickle, EveryPrefixOfAFileEndsWell) {
  for (const char* name : {"legacy.pth", "net.pdparams"}) {
    std::ifstream in(kData + name, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    for (size_t size = 0; size < bytes.size(); size += 61) outcome(bytes.substr(0, size));
  }
}

}  // namespace
}  // namespace paddle::formats::pickle
