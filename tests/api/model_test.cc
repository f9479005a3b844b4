// Models and training by the public C++ and C interfaces, against hand arithmetic.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "paddle/paddle.h"
#include "paddle/paddle_c.h"

namespace {

using paddle::Array;
using paddle::Model;

/// y = 2 x + 1, and the sum of the rows; and a folder that is removed at the end.
class ApiModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("paddle_api_" + std::to_string(::getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    write("double.yaml",
          "name: double\n"
          "inputs: {x: \"float32[batch, 2]\"}\n"
          "model: |\n"
          "  y = 2 * x + 1\n"
          "  total = y.sum(0)\n"
          "outputs: [y, total]\n");
    write("rows.csv", "a,y\n0,1\n1,3\n2,5\n3,7\n");
    write("line.yaml",
          "model: {inputs: {x: \"float32[batch, 1]\"}, model: [{linear: 1}], outputs: [p]}\n"
          "loss: mse_loss(p, y)\n"
          "optimizer: {name: sgd, lr: 0.1}\n"
          "data:\n"
          "  batch_size: 4\n"
          "  train: {kind: csv, path: rows.csv, fields: [{name: x, columns: [a]}, "
          "{name: y, columns: [y]}]}\n"
          "train: {epochs: 300, log_every: 100}\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

// The data lie on a known line, 1000 + 50 a, in the units of the file.
TEST_F(ApiModel, PredictsInTheUnitsOfTheData) {
  std::string rows = "a,b,y\n";
  for (int i = 0; i < 40; ++i)
    rows += std::to_string(100 + i) + "," + std::to_string((i * 7) % 5) + "," +
            std::to_string(1000 + 50 * i) + "\n";
  write("scaled.csv", rows);
  write("scaled.yaml",
        "model: {inputs: {x: \"float32[batch, 2]\"}, model: [{linear: 1}], outputs: [p]}\n"
        "loss: mse_loss(p[:, 0], y)\n"
        "optimizer: {name: adam, lr: 0.1}\n"
        "data:\n"
        "  batch_size: 40\n"
        "  train:\n"
        "    kind: csv\n"
        "    path: scaled.csv\n"
        "    fields: [{name: x, columns: [a, b], scaling: standard}, "
        "{name: y, scalar: true, scaling: standard}]\n"
        "train: {epochs: 300, log_every: 100}\n");
  paddle::TrainOptions options;
  options.output = path("scaled");
  paddle::Trainer(path("scaled.yaml"), options).run();
  Model model(path("scaled"));
  const Array predicted = model.predict({Array::from<float>({2, 2}, {110, 3, 130, 1})})[0];
  EXPECT_NEAR(predicted.data<float>()[0], 1500, 5);
  EXPECT_NEAR(predicted.data<float>()[1], 2500, 5);
  paddle::ModelOptions as_is;
  as_is.raw = true;
  Model raw(path("scaled"), as_is);
  // The mean of the columns is 0 to the model, and the mean of y is 0 of it.
  EXPECT_NEAR(raw.predict({Array::from<float>({1, 2}, {0, 0})})[0].data<float>()[0], 0, 0.01);
  paddle_model* c_model = nullptr;
  ASSERT_EQ(paddle_model_open(path("scaled").c_str(), &c_model), PADDLE_OK);
  const float row[2] = {110, 3};
  const int64_t shape[2] = {1, 2};
  const paddle_array input = {PADDLE_FLOAT32, 2, shape, row, sizeof row};
  paddle_result* result = nullptr;
  ASSERT_EQ(paddle_model_run(c_model, &input, 1, &result), PADDLE_OK) << paddle_last_error();
  paddle_array output;
  ASSERT_EQ(paddle_result_get(result, 0, &output), PADDLE_OK);
  EXPECT_EQ(static_cast<const float*>(output.data)[0], predicted.data<float>()[0]);
  paddle_result_free(result);
  paddle_model_close(c_model);
  EXPECT_THROW(model.predict({Array::from<float>({1, 3}, {1, 2, 3})}), paddle::DataError);
}

TEST_F(ApiModel, DescribesItselfAndPredicts) {
  Model model(path("double.yaml"));
  EXPECT_EQ(model.name(), "double");
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(model.inputs()[0].shape, (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(model.inputs()[0].dims, (std::vector<std::string>{"batch", "2"}));
  ASSERT_EQ(model.outputs().size(), 2u);
  EXPECT_EQ(model.outputs()[1].name, "total");
  EXPECT_EQ(model.outputs()[1].shape, std::vector<int64_t>{2});
  const auto first = model.predict({Array::from<float>({2, 2}, {1, 2, 3, 4})});
  ASSERT_EQ(first.size(), 2u);
  // The first results belong to the caller: the second call does not change them.
  const auto second = model.predict({{"x", Array::from<float>({1, 2}, {0, 0})}});
  EXPECT_EQ(first[0].to_vector<float>(), (std::vector<float>{3, 5, 7, 9}));
  EXPECT_EQ(first[1].to_vector<float>(), (std::vector<float>{10, 14}));
  EXPECT_EQ(second.at("total").to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST_F(ApiModel, RejectsInputsThatDoNotFit) {
  Model model(path("double.yaml"));
  const std::vector<Array> none;
  EXPECT_THROW(model.predict(none), paddle::DataError);
  EXPECT_THROW(model.predict({Array::from<float>({2}, {1, 2})}), paddle::DataError);
  EXPECT_THROW(model.predict({Array::from<float>({1, 3}, {1, 2, 3})}), paddle::DataError);
  EXPECT_THROW(model.predict({Array::from<double>({1, 2}, {1, 2})}), paddle::DataError);
  const Array x = Array::from<float>({1, 2}, {1, 2});
  EXPECT_THROW(model.predict({{"X", x}}), paddle::DataError);
  EXPECT_THROW(model.predict({{"x", x}, {"z", x}}), paddle::DataError);
  EXPECT_EQ(model.predict({x})[0].to_vector<float>(), (std::vector<float>{3, 5}));
}

TEST_F(ApiModel, ErrorsHaveTypesAndPlaces) {
  EXPECT_THROW(Model(path("nothing")), paddle::UsageError);
  write("wrong.yaml", "inputs: {x: \"float32[batch, 2]\"}\nmodel:\n  - sofmax: {}\noutputs: [y]\n");
  try {
    Model model(path("wrong.yaml"));
    FAIL();
  } catch (const paddle::ConfigError& e) {
    EXPECT_EQ(e.line(), 3) << e.what();
    EXPECT_NE(e.file().find("wrong.yaml"), std::string::npos);
  }
}

TEST_F(ApiModel, ThreadsShareAModel) {
  Model model(path("double.yaml"));
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t i = 0; i < wrong.size(); ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 25; ++k) {
        const auto x = static_cast<float>(i);
        const auto y = model.predict({Array::from<float>({1, 2}, {x, x})})[0].to_vector<float>();
        wrong[i] += y != std::vector<float>{2 * x + 1, 2 * x + 1};
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST_F(ApiModel, ClonesPredictAtTheSameTime) {
  write("layer.yaml",
        "inputs: {x: \"float32[batch, 8]\"}\n"
        "model: [{linear: 16}, relu, {linear: 4}]\n");
  const Model model(path("layer.yaml"));
  std::vector<Model> clones;
  for (int i = 0; i < 4; ++i) clones.push_back(model.clone());
  const Array x = Array::from<float>({1, 8}, {1, -2, 3, 4, -5, 6, 7, 8});
  const auto expected = Model(path("layer.yaml")).predict({x})[0].to_vector<float>();
  std::vector<std::thread> threads;
  std::vector<int> wrong(clones.size());
  for (size_t i = 0; i < clones.size(); ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 25; ++k)
        wrong[i] += clones[i].predict({x})[0].to_vector<float>() != expected;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(clones.size()));
}

TEST_F(ApiModel, StatefulModelsAreNotCloned) {
  write("counter.yaml",
        "inputs: {x: \"float32[2]\"}\n"
        "model: |\n"
        "  total = state(\"total\", [2], scope=\"sequence\")\n"
        "  total = update(total, total + x)\n"
        "  return total\n");
  const Model model(path("counter.yaml"));
  EXPECT_THROW(model.clone(), paddle::UsageError);
}

TEST_F(ApiModel, ComputesInOtherPrecisions) {
  write("product.yaml",
        "inputs: {x: \"float32[batch, 64]\"}\n"
        "model: [{linear: 64}]\n");
  const Array x(paddle::DType::kFloat32, {2, 64});
  for (int64_t i = 0; i < x.size(); ++i)
    const_cast<Array&>(x).data<float>()[i] = 0.01f * static_cast<float>(i + 1);
  const auto exact = Model(path("product.yaml")).predict({x})[0].to_vector<float>();
  paddle::ModelOptions options;
  options.precision = "bfloat16";
  const auto rounded = Model(path("product.yaml"), options).predict({x})[0].to_vector<float>();
  EXPECT_NE(exact, rounded);
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(exact[i], rounded[i], 0.05);
  options.precision = "int8";
  EXPECT_THROW(Model(path("product.yaml"), options), paddle::UsageError);
}

TEST_F(ApiModel, TrainsAndPredicts) {
  paddle::TrainOptions options;
  options.output = path("run");
  int lines = 0;
  options.on_log = [&](const paddle::LogLine& line) {
    ++lines;
    EXPECT_EQ(line.kind, "train");
  };
  paddle::Trainer trainer(path("line.yaml"), options);
  EXPECT_NE(trainer.resolved_config().find("mse_loss"), std::string::npos);
  const paddle::TrainResult result = trainer.run();
  EXPECT_EQ(result.steps, 300);
  EXPECT_EQ(lines, 3);
  EXPECT_EQ(result.log.size(), 3u);
  EXPECT_FALSE(result.last_valid);
  EXPECT_THROW(trainer.run(), paddle::UsageError);
  Model model(result.model_folder);
  EXPECT_EQ(model.parameter_count(), 2);
  EXPECT_NEAR(model.predict({Array::from<float>({1, 1}, {10})})[0].to_vector<float>()[0], 21, 0.05);
  // The run is not replaced unasked.
  EXPECT_THROW(paddle::Trainer(path("line.yaml"), options).run(), paddle::UsageError);
  options.resume = true;
  options.overrides = {"train.epochs=310"};
  EXPECT_EQ(paddle::Trainer(path("line.yaml"), options).run().steps, 310);
}

TEST_F(ApiModel, ExceptionsOfCallbacksPassThrough) {
  paddle::TrainOptions options;
  options.output = path("run");
  options.on_log = [](const paddle::LogLine&) { throw std::runtime_error("enough"); };
  try {
    paddle::Trainer(path("line.yaml"), options).run();
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "enough");
  }
  options.overrides = {"optimizer.lrr=1"};
  EXPECT_THROW(paddle::Trainer(path("line.yaml"), options), paddle::ConfigError);
}

TEST_F(ApiModel, CPredicts) {
  paddle_model* model = nullptr;
  ASSERT_EQ(paddle_model_open(path("double.yaml").c_str(), &model), PADDLE_OK);
  size_t count = 0;
  EXPECT_EQ(paddle_model_input_count(model, &count), PADDLE_OK);
  EXPECT_EQ(count, 1u);
  paddle_tensor_info info;
  ASSERT_EQ(paddle_model_input(model, 0, &info), PADDLE_OK);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.dtype, PADDLE_FLOAT32);
  ASSERT_EQ(info.rank, 2);
  EXPECT_EQ(info.shape[0], -1);
  const float row[] = {1, 2};
  const int64_t shape[] = {1, 2};
  const paddle_array input = {PADDLE_FLOAT32, 2, shape, row, sizeof row};
  paddle_result* result = nullptr;
  ASSERT_EQ(paddle_model_run(model, &input, 1, &result), PADDLE_OK) << paddle_last_error();
  EXPECT_EQ(paddle_model_close(model), PADDLE_OK);
  paddle_array output;
  ASSERT_EQ(paddle_result_get(result, 0, &output), PADDLE_OK);
  ASSERT_EQ(output.bytes, 2 * sizeof(float));
  EXPECT_EQ(static_cast<const float*>(output.data)[1], 5);
  EXPECT_EQ(paddle_result_free(result), PADDLE_OK);
}

TEST_F(ApiModel, COpensWithOptionsAndClones) {
  write("wide.yaml",
        "params: {wide: 4}\n"
        "inputs: {x: \"float32[batch, 2]\"}\n"
        "model: |\n"
        "  return linear(x, wide)\n");
  const char* overrides[] = {"params.wide=3"};
  paddle_model_options options = {};
  options.struct_size = sizeof options;
  options.overrides = overrides;
  options.override_count = 1;
  options.seed = 7;
  options.precision = "float32";
  paddle_model* model = nullptr;
  ASSERT_EQ(paddle_model_open_with(path("wide.yaml").c_str(), &options, &model), PADDLE_OK)
      << paddle_last_error();
  paddle_model* clone = nullptr;
  ASSERT_EQ(paddle_model_clone(model, &clone), PADDLE_OK) << paddle_last_error();
  const float row[] = {1, 2};
  const int64_t shape[] = {1, 2};
  const paddle_array input = {PADDLE_FLOAT32, 2, shape, row, sizeof row};
  std::vector<std::vector<float>> outputs;
  for (paddle_model* each : {model, clone}) {
    paddle_result* result = nullptr;
    ASSERT_EQ(paddle_model_run(each, &input, 1, &result), PADDLE_OK) << paddle_last_error();
    EXPECT_EQ(paddle_model_close(each), PADDLE_OK);
    paddle_array output;
    ASSERT_EQ(paddle_result_get(result, 0, &output), PADDLE_OK);
    ASSERT_EQ(output.bytes, 3 * sizeof(float));
    const auto* const data = static_cast<const float*>(output.data);
    outputs.emplace_back(data, data + 3);
    EXPECT_EQ(paddle_result_free(result), PADDLE_OK);
  }
  EXPECT_EQ(outputs[0], outputs[1]);
  EXPECT_EQ(paddle_model_clone(model, &clone), PADDLE_USAGE);  // closed
  EXPECT_EQ(clone, nullptr);
  options.precision = "int8";
  EXPECT_EQ(paddle_model_open_with(path("wide.yaml").c_str(), &options, &model), PADDLE_USAGE);
  options.precision = nullptr;
  options.overrides = nullptr;
  EXPECT_EQ(paddle_model_open_with(path("wide.yaml").c_str(), &options, &model), PADDLE_USAGE);
  options.struct_size = 1;
  EXPECT_EQ(paddle_model_open_with(path("wide.yaml").c_str(), &options, &model), PADDLE_USAGE);
  EXPECT_EQ(paddle_model_open_with(path("wide.yaml").c_str(), nullptr, &model), PADDLE_OK);
  EXPECT_EQ(paddle_model_close(model), PADDLE_OK);
  EXPECT_EQ(paddle_set_threads(0), PADDLE_USAGE);
}

TEST_F(ApiModel, CAnswersHostileArguments) {
  paddle_model* model = nullptr;
  EXPECT_EQ(paddle_model_open(nullptr, &model), PADDLE_USAGE);
  EXPECT_EQ(paddle_model_open("x", nullptr), PADDLE_USAGE);
  EXPECT_EQ(paddle_model_open(path("nothing").c_str(), &model), PADDLE_USAGE);
  EXPECT_EQ(model, nullptr);
  EXPECT_NE(std::string(paddle_last_error()).find("nothing"), std::string::npos);
  ASSERT_EQ(paddle_model_open(path("double.yaml").c_str(), &model), PADDLE_OK);
  paddle_tensor_info info;
  size_t count = 0;
  EXPECT_EQ(paddle_model_input(model, 7, &info), PADDLE_USAGE);
  EXPECT_EQ(paddle_model_input(model, 0, nullptr), PADDLE_USAGE);
  EXPECT_EQ(paddle_model_input_count(nullptr, &count), PADDLE_USAGE);
  const float row[] = {1, 2};
  const int64_t good[] = {1, 2}, negative[] = {-1, -2},
                huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  paddle_result* result = nullptr;
  const auto status = [&](const paddle_array& input) {
    return paddle_model_run(model, &input, 1, &result);
  };
  EXPECT_EQ(status({99, 2, good, row, sizeof row}), PADDLE_USAGE);
  EXPECT_EQ(status({-1, 2, good, row, sizeof row}), PADDLE_USAGE);
  EXPECT_EQ(status({PADDLE_FLOAT32, -1, good, row, sizeof row}), PADDLE_USAGE);
  EXPECT_EQ(status({PADDLE_FLOAT32, 1 << 30, good, row, sizeof row}), PADDLE_USAGE);
  EXPECT_EQ(status({PADDLE_FLOAT32, 2, nullptr, row, sizeof row}), PADDLE_USAGE);
  EXPECT_EQ(status({PADDLE_FLOAT32, 2, good, nullptr, sizeof row}), PADDLE_USAGE);
  EXPECT_EQ(status({PADDLE_FLOAT32, 2, good, row, 4}), PADDLE_USAGE);
  EXPECT_EQ(status({PADDLE_FLOAT32, 2, negative, row, sizeof row}), PADDLE_USAGE);
  EXPECT_EQ(status({PADDLE_FLOAT32, 2, huge, row, sizeof row}), PADDLE_USAGE);
  EXPECT_EQ(status({PADDLE_INT32, 2, good, row, sizeof row}), PADDLE_DATA);
  const paddle_array input = {PADDLE_FLOAT32, 2, good, row, sizeof row};
  EXPECT_EQ(paddle_model_run(model, &input, 2, &result), PADDLE_USAGE);
  EXPECT_EQ(paddle_model_run(model, nullptr, 1, &result), PADDLE_USAGE);
  EXPECT_EQ(paddle_model_run(model, &input, 1, nullptr), PADDLE_USAGE);
  EXPECT_EQ(result, nullptr);
  ASSERT_EQ(paddle_model_run(model, &input, 1, &result), PADDLE_OK);
  paddle_array output;
  EXPECT_EQ(paddle_result_get(result, 9, &output), PADDLE_USAGE);
  EXPECT_EQ(paddle_result_get(result, 0, nullptr), PADDLE_USAGE);
  EXPECT_EQ(paddle_result_free(result), PADDLE_OK);
  EXPECT_EQ(paddle_result_free(result), PADDLE_USAGE);
  EXPECT_EQ(paddle_model_close(model), PADDLE_OK);
  EXPECT_EQ(paddle_model_close(model), PADDLE_USAGE);
  EXPECT_EQ(paddle_model_run(model, &input, 1, &result), PADDLE_USAGE);
  EXPECT_EQ(paddle_model_close(nullptr), PADDLE_OK);
}

TEST_F(ApiModel, OpensFilesInMemory) {
  const std::string text =
      "inputs: {x: \"float32[batch, 2]\"}\nmodel: |\n  y = 2 * x + 1\noutputs: [y]\n";
  Model model = Model::from_memory({{"double.yaml", text}});
  EXPECT_EQ(model.predict({Array::from<float>({1, 2}, {1, 2})})[0].to_vector<float>(),
            (std::vector<float>{3, 5}));
  EXPECT_THROW(Model::from_memory({{"readme.txt", text}}), paddle::UsageError);
  EXPECT_THROW(Model::from_memory({{"../double.yaml", text}}), paddle::UsageError);
  EXPECT_THROW(Model::from_memory({{"/double.yaml", text}}), paddle::UsageError);
  EXPECT_THROW(Model::from_memory({{"net.onnx", "not ONNX"}}), paddle::ModelError);
}

TEST_F(ApiModel, TrainedModelsOpenInMemory) {
  paddle::TrainOptions options;
  options.output = path("run");
  paddle::Trainer(path("line.yaml"), options).run();
  std::map<std::string, std::string> contents;
  const std::filesystem::path root = path("run") + "/model";
  for (const auto& each : std::filesystem::recursive_directory_iterator(root)) {
    if (!each.is_regular_file()) continue;
    std::ifstream file(each.path(), std::ios::binary);
    contents[std::filesystem::relative(each.path(), root).string()] =
        std::string(std::istreambuf_iterator<char>(file), {});
  }
  std::map<std::string, std::string_view> files(contents.begin(), contents.end());
  Model model = Model::from_memory(files), same(root.string());
  std::filesystem::remove_all(root);
  const Array x = Array::from<float>({2, 1}, {4, 5});
  EXPECT_EQ(model.predict({x})[0].to_vector<float>(), same.predict({x})[0].to_vector<float>());

  std::vector<paddle_file> list;
  for (const auto& [name, content] : contents)
    list.push_back({name.c_str(), content.data(), content.size()});
  paddle_model* handle = nullptr;
  ASSERT_EQ(paddle_model_open_memory(list.data(), list.size(), nullptr, &handle), PADDLE_OK)
      << paddle_last_error();
  EXPECT_EQ(paddle_model_close(handle), PADDLE_OK);
  EXPECT_EQ(paddle_model_open_memory(nullptr, 1, nullptr, &handle), PADDLE_USAGE);
}

TEST_F(ApiModel, PredictsOnItsOwnThread) {
  Model model(path("double.yaml"));
  std::vector<std::future<std::vector<Array>>> results;
  for (int i = 0; i < 20; ++i)
    results.push_back(
        model.predict_async({Array::from<float>({1, 2}, {static_cast<float>(i), 0})}));
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(results[static_cast<size_t>(i)].get()[0].to_vector<float>()[0], 2 * i + 1);
  auto wrong = model.predict_async({Array::from<float>({1, 3}, {1, 2, 3})});
  EXPECT_THROW(wrong.get(), paddle::DataError);
  std::future<std::vector<Array>> last;
  {
    Model other = model.clone();
    last = other.predict_async({Array::from<float>({1, 2}, {1, 2})});
  }
  EXPECT_EQ(last.get()[0].to_vector<float>(), (std::vector<float>{3, 5}));
}

TEST_F(ApiModel, MemoryAndArraysInC) {
  uint64_t resident = 0, peak = 0;
  ASSERT_EQ(paddle_memory_usage(&resident, &peak), PADDLE_OK);
  EXPECT_GT(resident, uint64_t{1} << 20);
  EXPECT_GE(peak, resident / 2);
  EXPECT_EQ(paddle_release_memory(), PADDLE_OK);
  const int64_t shape[] = {2};
  const float values[] = {1, 2};
  const paddle_array array = {PADDLE_FLOAT32, 1, shape, values, sizeof values};
  const char* const names[] = {"x"};
  ASSERT_EQ(paddle_arrays_save(path("a.npz").c_str(), names, &array, 1), PADDLE_OK)
      << paddle_last_error();
  paddle_result* read = nullptr;
  ASSERT_EQ(paddle_arrays_load(path("a.npz").c_str(), &read), PADDLE_OK);
  const char* name = nullptr;
  paddle_array back;
  ASSERT_EQ(paddle_result_name(read, 0, &name), PADDLE_OK);
  EXPECT_STREQ(name, "x");
  ASSERT_EQ(paddle_result_get(read, 0, &back), PADDLE_OK);
  EXPECT_EQ(static_cast<const float*>(back.data)[1], 2);
  EXPECT_EQ(paddle_result_name(read, 1, &name), PADDLE_USAGE);
  EXPECT_EQ(paddle_result_free(read), PADDLE_OK);
  EXPECT_EQ(paddle_arrays_load(path("none.npz").c_str(), &read), PADDLE_DATA);
  EXPECT_EQ(paddle_arrays_save(path("a.txt").c_str(), names, &array, 1), PADDLE_USAGE);
}

}  // namespace
