// Bodies of /v1/predict: what they say, in every form, and what is rejected with which words.

#include "serve/predict_request.h"

#include <gtest/gtest.h>

#include <limits>

#include "serve/api_error.h"

namespace paddle::serve {
namespace {

using Kind = PredictRequest::Kind;

PredictRequest read(const std::string& body) { return read_predict_request("", "", body); }

/// The message of a rejection with status 400; "" if there is none.
std::string rejection(const std::string& body, const std::string& type = "",
                      const std::string& query = "") {
  try {
    read_predict_request(type, query, body);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    return error.message;
  }
  return "";
}

std::string rejection_of(const std::string& lists, DType dtype) {
  const PredictRequest request = read("{\"inputs\": {\"x\": " + lists + "}}");
  try {
    to_array(request.inputs.at(0).second, dtype, "x");
  } catch (const ApiError& error) {
    return error.message;
  }
  return "";
}

std::vector<double> numbers(const std::string& lists, DType dtype, const Dims& shape) {
  const PredictRequest request = read("{\"inputs\": {\"x\": " + lists + "}}");
  const Array array = to_array(request.inputs.at(0).second, dtype, "x");
  EXPECT_EQ(array.dtype, dtype);
  EXPECT_EQ(array.shape, shape) << lists;
  std::vector<double> out;
  for (int64_t i = 0; i < array.size(); ++i) out.push_back(array.number(i));
  return out;
}

TEST(PredictRequest, ListsAreArrays) {
  using V = std::vector<double>;
  EXPECT_EQ(numbers("[[1, 2.5], [-3e2, 4]]", DType::kF32, {2, 2}), (V{1, 2.5, -300, 4}));
  EXPECT_EQ(numbers("[[[1], [2]]]", DType::kI64, {1, 2, 1}), (V{1, 2}));
  EXPECT_EQ(numbers("[1.0, 2e1]", DType::kI32, {2}), (V{1, 20}));
  EXPECT_EQ(numbers("7", DType::kF64, {}), V{7});
  EXPECT_EQ(numbers("[]", DType::kF32, {0}), V{});
  EXPECT_EQ(numbers("[[], []]", DType::kF32, {2, 0}), V{});
  EXPECT_EQ(numbers("[true, false]", DType::kBool, {2}), (V{1, 0}));
  EXPECT_EQ(numbers("[1, 0]", DType::kBool, {2}), (V{1, 0}));
  EXPECT_EQ(numbers("[0.5]", DType::kBF16, {1}), V{0.5});
  EXPECT_EQ(numbers("[1e39]", DType::kF64, {1}), V{1e39});
  // Integers keep all of their digits.
  const PredictRequest request = read(R"({"inputs": {"x": [9007199254740993]}})");
  EXPECT_EQ(to_array(request.inputs[0].second, DType::kI64, "x").integer(0), 9007199254740993);
  const PredictRequest keys = read(R"({"inputs": {"x": [18446744073709551615, 1]}})");
  EXPECT_EQ(static_cast<uint64_t>(to_array(keys.inputs[0].second, DType::kU64, "x").integer(0)),
            UINT64_MAX);
  EXPECT_EQ(numbers("[18446744073709551615, 1]", DType::kF32, {2}), (V{0x1p64, 1}));
  EXPECT_EQ(numbers("[9223372036854775808, 0.5]", DType::kF64, {2}), (V{0x1p63, 0.5}));
  const PredictRequest typed = read(R"({"inputs": {"x": {"dtype": "u8", "data": [3]}}})");
  EXPECT_EQ(typed.inputs[0].second.dtype, DType::kU8);
  EXPECT_EQ(typed.inputs[0].second.integers, std::vector<int64_t>{3});
  const PredictRequest strings = read(R"({"inputs": {"s": [["a", "\u00e9"]]}})");
  EXPECT_EQ(strings.inputs[0].second.shape, (Dims{1, 2}));
  EXPECT_EQ(strings.inputs[0].second.strings, (std::vector<std::string>{"a", "é"}));
}

TEST(PredictRequest, ValuesThatATypeDoesNotHoldAreNamed) {
  EXPECT_EQ(rejection_of("[1.5]", DType::kI64), "input 'x' has 1.5, expected values of int64");
  EXPECT_EQ(rejection_of("[300]", DType::kU8), "input 'x' has 300, expected values of uint8");
  EXPECT_EQ(rejection_of("[-1]", DType::kU64), "input 'x' has -1, expected values of uint64");
  EXPECT_EQ(rejection_of("[9223372036854775808]", DType::kI64),
            "input 'x' has 9223372036854775808, expected values of int64");
  EXPECT_EQ(rejection_of("[1e39]", DType::kF32), "input 'x' has 1e+39, expected values of float32");
  EXPECT_EQ(rejection_of("[70000]", DType::kF16),
            "input 'x' has 70000, expected values of float16");
  EXPECT_EQ(rejection_of("[2]", DType::kBool), "input 'x' has 2, expected values of bool");
  EXPECT_EQ(rejection_of("[true]", DType::kF32),
            "input 'x' has booleans, expected values of float32");
  EXPECT_EQ(rejection_of("[\"a\"]", DType::kI64),
            "input 'x' has strings, expected values of int64");
}

TEST(PredictRequest, MalformedListsAreRejected) {
  const auto of = [](const std::string& lists) {
    return rejection("{\"inputs\": {\"x\": " + lists + "}}");
  };
  EXPECT_EQ(of("[[1, 2], [3]]"), "input 'x' has lists of 2 and of 1 values at one level");
  EXPECT_EQ(of("[[], [1]]"), "input 'x' has lists of 0 and of 1 values at one level");
  for (const char* lists : {"[1, [2]]", "[[1], 2]", "[[1], [[2]]]", "[[], [[]]]"})
    EXPECT_EQ(of(lists), "input 'x' has lists and values at one level") << lists;
  EXPECT_EQ(of("[1, \"a\"]"), "input 'x' has values of different kinds");
  EXPECT_EQ(of("[1, true]"), "input 'x' has values of different kinds");
  EXPECT_EQ(of("[null]"), "input 'x' has a null, expected numbers");
  EXPECT_EQ(of("[{}]"), "input 'x' has an object in its lists");
  EXPECT_EQ(of(std::string(100'000, '[')), "input 'x' has more than 32 lists inside each other");
  EXPECT_EQ(of("{}"), "input 'x' is an object without 'data'");
  EXPECT_EQ(of(R"({"dtype": "float23", "data": 1})"),
            "input 'x': 'dtype' is 'float23', expected the name of a type, such as float32");
  EXPECT_EQ(of(R"({"data": 1, "data": 2})"), "input 'x' has 'data' twice");
  EXPECT_EQ(of("1, \"x\": 2"), "input 'x' occurs twice");
  for (const char* lists : {"[NaN]", "[1e999]", "[Infinity]", "[1", "[1,]"})
    EXPECT_TRUE(of(lists).starts_with("the request is not JSON: ")) << lists;
}

TEST(PredictRequest, RowsAreLinesOfJson) {
  const PredictRequest request = read(
      R"({"rows": [{"a": 1, "b": "x\ny \u00e9", "c": [1, {"d": []}, "z"], "e": null},
                  {}, {"n": 0.1, "t": true, "big": 18446744073709551615}], "model": "m"})");
  EXPECT_EQ(request.kind, Kind::kRows);
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.row_count, 3);
  EXPECT_EQ(request.rows,
            "{\"a\":1,\"b\":\"x\\ny é\",\"c\":[1,{\"d\":[]},\"z\"],\"e\":null}\n{}\n"
            "{\"n\":0.1,\"t\":true,\"big\":18446744073709551615}\n");
  EXPECT_EQ(rejection(R"({"rows": [1]})"), "'rows' has 1, expected objects");
  EXPECT_EQ(rejection(R"({"rows": [[]]})"),
            "'rows' has a list, expected objects with a value for each column");
  EXPECT_EQ(rejection(R"({"rows": {}})"), "'rows' is an object, expected a list of objects");
  EXPECT_EQ(rejection("{\"rows\": [{\"a\": " + std::string(100'000, '[')),
            "'rows[0]' has more than 32 values inside each other");
}

TEST(PredictRequest, KeysAreChecked) {
  EXPECT_TRUE(rejection(R"({"input": {}})")
                  .starts_with("unknown key 'input' (did you mean "
                               "'inputs'?)"));
  EXPECT_EQ(rejection("{}"), "there are no 'inputs', 'rows', 'images' or 'sounds'");
  EXPECT_EQ(rejection("[1]"), "the request is a list, expected a JSON object");
  EXPECT_EQ(rejection("1"), "the request is 1, expected a JSON object");
  EXPECT_TRUE(rejection("").starts_with("the request is not JSON"));
  EXPECT_EQ(rejection(R"({"model": 1})"), "'model' is 1, expected a string");
  EXPECT_EQ(rejection(R"({"decode": "yes"})"), "'decode' is 'yes', expected true or false");
  EXPECT_EQ(rejection(R"({"inputs": [1]})"),
            "'inputs' is a list, expected an object of nested lists by input");
  EXPECT_TRUE(rejection(R"({"inputs": {}, "rows": []})")
                  .starts_with("a request has one of 'inputs', 'rows',"));
  EXPECT_EQ(rejection("{\"inputs\": {}}", "", "decode=maybe"),
            "'decode' is 'maybe', expected true or false");
  EXPECT_TRUE(rejection("{}", "", "modle=x").starts_with("unknown parameter 'modle'"));
}

TEST(PredictRequest, Files) {
  const PredictRequest images =
      read(R"({"images": ["aGVsbG8=", "data:image/png;base64,aGk"], "decode": false})");
  EXPECT_EQ(images.kind, Kind::kImages);
  EXPECT_EQ(images.files, (std::vector<std::string>{"hello", "hi"}));
  EXPECT_EQ(images.decode, false);
  EXPECT_EQ(read(R"({"sounds": "aGVsbG8="})").files, std::vector<std::string>{"hello"});
  EXPECT_EQ(rejection(R"({"images": ["a*b"]})"), "'images[0]' is not base64");
  EXPECT_EQ(rejection(R"({"images": ["aGk=", ""]})"), "'images[1]' is not base64");
  EXPECT_EQ(rejection(R"({"images": [1]})"), "'images' has 1, expected strings in base64");

  const std::string bytes("\x89PNG\0\r\n", 7);
  const PredictRequest raw = read_predict_request("Image/PNG", "model=a%20b+c&decode=0", bytes);
  EXPECT_EQ(raw.kind, Kind::kImages);
  EXPECT_EQ(raw.files, std::vector<std::string>{bytes});
  EXPECT_EQ(raw.model, "a b c");
  EXPECT_EQ(raw.decode, false);
  EXPECT_EQ(read_predict_request("application/x-npz", "", "PK").kind, Kind::kNpz);
  EXPECT_EQ(read_predict_request("audio/wav", "", "RIFF").kind, Kind::kSounds);
  EXPECT_EQ(rejection("", "image/png"), "the request has no content");
}

TEST(PredictRequest, Forms) {
  const std::string type = "multipart/form-data; boundary=----b1";
  const auto field = [](const std::string& name, const std::string& content) {
    return "------b1\r\nContent-Disposition: form-data; name=\"" + name +
           "\"; filename=\"a;b.png\"\r\nContent-Type: image/png\r\n\r\n" + content + "\r\n";
  };
  const std::string image("\x89PNG\r\n--\0------b", 16);
  const std::string body =
      field("image", image) + field("model", "m") + field("image", "two") + "------b1--\r\n";
  const PredictRequest request = read_predict_request(type, "", body);
  EXPECT_EQ(request.kind, Kind::kImages);
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.files, (std::vector<std::string>{image, "two"}));
  for (size_t cut = 0; cut < body.size() - 4; cut += 3)
    EXPECT_NE(rejection(body.substr(0, cut), type), "") << cut;
  EXPECT_TRUE(rejection(field("picture", "x") + "------b1--", type)
                  .starts_with("the form has a field 'picture'"));
  EXPECT_EQ(rejection("x", "multipart/form-data"),
            "the form has no boundary, or does not begin with it");
}

}  // namespace
}  // namespace paddle::serve
