// Arrays of the public interface: what they hold, what they share, and what they reject.

#include <gtest/gtest.h>

#include <cstring>

#include "paddle/array.h"
#include "paddle/error.h"

namespace {

using paddle::Array;
using paddle::DType;

TEST(ApiArray, HoldsValuesInRowMajorOrder) {
  const Array a = Array::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(a.dtype(), DType::kFloat32);
  EXPECT_EQ(a.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(a.size(), 6);
  EXPECT_EQ(a.bytes(), 24u);
  EXPECT_EQ(a.data<float>()[4], 5);
  EXPECT_EQ(Array().size(), 0);
  EXPECT_EQ(Array(DType::kInt64, {3}).to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 0}));
}

TEST(ApiArray, CopiesShareAndClonesDoNot) {
  Array a = Array::from<int32_t>({2}, {1, 2});
  Array shared = a, own = a.clone();
  a.data<int32_t>()[0] = 7;
  EXPECT_EQ(shared.data<int32_t>()[0], 7);
  EXPECT_EQ(own.data<int32_t>()[0], 1);
  EXPECT_EQ(a.reshape({1, 2}).raw(), a.raw());
}

TEST(ApiArray, MovedFromArraysAreEmpty) {
  Array a = Array::scalar(1.0);
  const Array b = std::move(a);
  EXPECT_EQ(b.size(), 1);
  EXPECT_EQ(a.size(), 0);  // NOLINT: documented to be usable
}

TEST(ApiArray, BorrowsMemoryAndKeepsItsOwner) {
  auto values = std::make_shared<std::vector<double>>(std::vector<double>{1, 2});
  const std::weak_ptr<std::vector<double>> watched = values;
  {
    double* const data = values->data();
    Array a = Array::borrow(DType::kFloat64, {2}, data, std::move(values));
    EXPECT_EQ(a.raw(), data);
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

TEST(ApiArray, Casts) {
  const Array a = Array::from<float>({4}, {-1.9f, 0, 0.4f, 3.5f});
  EXPECT_EQ(a.cast(DType::kInt32).to_vector<int32_t>(), (std::vector<int32_t>{-1, 0, 0, 3}));
  EXPECT_EQ(a.cast(DType::kBool).to_vector<bool>(), (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(a.cast(DType::kFloat16).bytes(), 8u);
  // A cast is a copy, also to the same type.
  EXPECT_NE(a.cast(DType::kFloat32).raw(), a.raw());
}

TEST(ApiArray, RejectsWhatCannotBe) {
  EXPECT_THROW(Array(DType::kFloat32, {2, -1}), paddle::UsageError);
  EXPECT_THROW(Array(DType::kFloat32, {int64_t{1} << 40, int64_t{1} << 40}), paddle::UsageError);
  EXPECT_THROW(Array(static_cast<DType>(99), {1}), paddle::UsageError);
  EXPECT_THROW(Array::from<float>({3}, {1, 2}), paddle::UsageError);
  EXPECT_THROW(Array::copy(DType::kFloat32, {1}, nullptr), paddle::UsageError);
  alignas(8) char bytes[16] = {};
  EXPECT_THROW(Array::borrow(DType::kFloat32, {1}, bytes + 1), paddle::UsageError);
  EXPECT_THROW(Array(DType::kFloat32, {1}).data<double>(), paddle::UsageError);
  EXPECT_THROW(Array(DType::kFloat32, {4}).reshape({3}), paddle::UsageError);
  EXPECT_EQ(Array(DType::kFloat32, {0, int64_t{1} << 62}).size(), 0);
}

TEST(ApiArray, HoldsComplexNumbers) {
  const std::vector<std::complex<float>> values = {{1, 2}, {-3, 0.5f}};
  const Array z = Array::from<std::complex<float>>({2}, values);
  EXPECT_EQ(z.dtype(), paddle::DType::kComplex64);
  EXPECT_STREQ(paddle::dtype_name(z.dtype()), "complex64");
  EXPECT_EQ(z.bytes(), 16u);
  EXPECT_EQ(z.to_vector<std::complex<float>>(), values);
  const Array wide = z.cast(paddle::DType::kComplex128);
  EXPECT_EQ(wide.data<std::complex<double>>()[1], std::complex<double>(-3, 0.5));
  EXPECT_EQ(z.cast(paddle::DType::kFloat32).to_vector<float>(), (std::vector<float>{1, -3}));
}

TEST(ApiArray, FilesKeepNamesTypesAndShapes) {
  const std::map<std::string, Array> arrays = {
      {"bits", Array::from<bool>({3}, {true, false, true})},
      {"half", Array::from<float>({2}, {0.5f, -2}).cast(paddle::DType::kFloat16)},
      {"image", Array::from<uint8_t>({1, 2, 2}, {0, 7, 128, 255})},
      {"scalar", Array::scalar<int64_t>(-5)},
      {"none", Array(paddle::DType::kFloat64, {0, 3})},
      {"z", Array::from<std::complex<double>>({1}, {{1, -1}})}};
  for (const char* ending : {".npz", ".safetensors"}) {
    std::map<std::string, Array> written = arrays;
    if (std::string(ending) == ".safetensors") written.erase("z");
    const std::string path = testing::TempDir() + "paddle_arrays" + ending;
    paddle::save_arrays(path, written);
    const auto read = paddle::load_arrays(path);
    ASSERT_EQ(read.size(), written.size());
    for (const auto& [name, array] : written) {
      const Array& back = read.at(name);
      EXPECT_EQ(back.dtype(), array.dtype()) << name;
      EXPECT_EQ(back.shape(), array.shape()) << name;
      EXPECT_EQ(std::memcmp(back.raw(), array.raw(), array.bytes()), 0) << name;
    }
  }
  const std::string one = testing::TempDir() + "paddle_array.npy";
  paddle::save_arrays(one, {{"any", arrays.at("image")}});
  EXPECT_EQ(paddle::load_arrays(one).at("").to_vector<uint8_t>(),
            arrays.at("image").to_vector<uint8_t>());
}

TEST(ApiArray, FilesReportWhatTheyCannotDo) {
  const Array one = Array::scalar<float>(1);
  EXPECT_THROW(paddle::save_arrays("x.txt", {{"a", one}}), paddle::UsageError);
  EXPECT_THROW(paddle::save_arrays("x.npy", {{"a", one}, {"b", one}}), paddle::UsageError);
  EXPECT_THROW(paddle::save_arrays("/nowhere/x.npz", {{"a", one}}), paddle::DeviceError);
  EXPECT_THROW(paddle::load_arrays("/nowhere/x.npz"), paddle::Error);
}

}  // namespace

// As in dlpack.h.
struct DLDevice {
  int32_t device_type, device_id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

namespace {

TEST(ApiArray, GoesToOtherLibrariesWithoutACopy) {
  Array x = Array::from<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  DLManagedTensor* const out = x.to_dlpack();
  EXPECT_EQ(out->dl_tensor.data, x.raw());
  EXPECT_EQ(out->dl_tensor.ndim, 2);
  EXPECT_EQ(out->dl_tensor.shape[1], 3);
  EXPECT_EQ(out->dl_tensor.dtype.bits, 32);
  const void* const memory = x.raw();
  x = Array();  // the receiver keeps the elements
  const Array back = Array::from_dlpack(out);
  EXPECT_EQ(back.raw(), memory);
  EXPECT_EQ(back.to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
}

TEST(ApiArray, ComesFromOtherLibraries) {
  static int deleted;
  deleted = 0;
  float values[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {3, 2}, strides[] = {1, 3};  // columns
  DLManagedTensor given{{values, {1, 0}, 2, {2, 32, 1}, shape, strides, 0},
                        nullptr,
                        [](DLManagedTensor*) { ++deleted; }};
  {
    const Array x = Array::from_dlpack(&given);
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  }
  EXPECT_EQ(deleted, 1);
  given.dl_tensor.device.device_type = 2;
  EXPECT_THROW(Array::from_dlpack(&given), paddle::UsageError);
  given.dl_tensor.device.device_type = 1;
  given.dl_tensor.dtype.lanes = 4;
  EXPECT_THROW(Array::from_dlpack(&given), paddle::UsageError);
  EXPECT_EQ(deleted, 1) << "the caller keeps what is rejected";
  EXPECT_THROW(Array::from_dlpack(nullptr), paddle::UsageError);
}

}  // namespace
