#pragma once
// Programs in the JSON form of PIR for tests, operation by operation.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace paddle::paddle_program {

/// A program in the JSON form of PIR.
class PirProgram {
 public:
  int input(const std::string& name, const std::string& type, const std::string& dims) {
    const int id = next_++;
    add(R"({"#":"1.data","A":[)" + attribute("name", R"("0.a_str")", '"' + name + '"') +
        R"(],"I":[],"O":[)" + result(id, type, dims) + "]}");
    return id;
  }
  /// `attributes` are made by the functions below.
  int op(const std::string& name, const std::vector<int>& operands,
         const std::vector<std::string>& attributes, const std::string& type,
         const std::string& dims) {
    const int id = next_++;
    std::string inputs, all;
    for (const int each : operands)
      inputs += (inputs.empty() ? "" : ",") + std::string(R"({"%":)") + std::to_string(each) + "}";
    for (const std::string& each : attributes) all += (all.empty() ? "" : ",") + each;
    add(R"({"#":"1.)" + name + R"(","A":[)" + all + R"(],"I":[)" + inputs + R"(],"O":[)" +
        result(id, type, dims) + "]}");
    return id;
  }
  int integers(const std::string& values, const std::string& dims) {
    return op("full_int_array", {},
              {attribute("value", R"("0.a_array")", values),
               attribute("dtype", R"("1.a_dtype")", R"("int64")")},
              "i64", dims);
  }
  void fetch(int value, const std::string& type, const std::string& dims) {
    const int id = next_++;
    add(R"({"#":"1.fetch","A":[)" +
        attribute("name", R"("0.a_str")", "\"out" + std::to_string(fetched_) + '"') + "," +
        attribute("col", R"("0.a_i32")", std::to_string(fetched_)) + R"(],"I":[{"%":)" +
        std::to_string(value) + R"(}],"O":[)" + result(id, type, dims) + "]}");
    ++fetched_;
  }
  std::string write(const std::string& name) const {
    const std::string folder = testing::TempDir() + "/paddle_operations";
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/" + name + ".json")
        << R"({"base_code":{"magic":"pir","version":4},"program":{"regions":[{"blocks":[{"ops":[)"
        << operations_ << "]}]}]}}";
    return folder + "/" + name + ".json";
  }

  static std::string attribute(const std::string& name, const std::string& kind,
                               const std::string& value) {
    return R"({"N":")" + name + R"(","AT":{"#":)" + kind + R"(,"D":)" + value + "}}";
  }
  static std::string number(const std::string& name, const std::string& value) {
    return attribute(name, R"("0.a_any")", value);
  }

 private:
  void add(const std::string& operation) {
    operations_ += (operations_.empty() ? "" : ",") + operation;
  }
  static std::string result(int id, const std::string& type, const std::string& dims) {
    return R"({"%":)" + std::to_string(id) + R"(,"TT":{"#":"0.t_dtensor","D":[{"#":"0.t_)" + type +
           R"("},)" + dims + R"(,"NCHW",[],0]}})";
  }
  std::string operations_;
  int next_ = 1, fetched_ = 0;
};

}  // namespace paddle::paddle_program
