// Kinds of dataset that are registered while the program runs: one of records with columns, and one
// with a dataset of its own.

#include "data/dataset_kind.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "data/config/dataset_config.h"

namespace paddle::data {
namespace {

/// Lines of cells that are separated by `|`, after a line of names. The column `color` declares its
/// values.
class PipesSource final : public RecordSource {
 public:
  explicit PipesSource(const std::string& path) : path_(path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    names_ = split(line, '|');
    while (std::getline(file, line)) rows_.push_back(split(line, '|'));
  }
  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  void cells(int64_t record, std::vector<std::string_view>& out, std::string&) const override {
    const auto& row = rows_[static_cast<size_t>(record)];
    out.assign(row.begin(), row.end());
  }
  SourceLocation location(int64_t record) const override {
    return {path_, static_cast<int>(record + 2)};
  }
  std::vector<std::string> paths() const override { return {path_}; }
  ColumnKind column_kind(size_t column) const override {
    return names_[column] == "color" ? ColumnKind::kCategorical : ColumnKind::kNumeric;
  }
  std::vector<std::string> declared_values(size_t column) const override {
    return names_[column] == "color" ? std::vector<std::string>{"red", "green", "blue"}
                                     : std::vector<std::string>{};
  }

 private:
  std::string path_;
  std::vector<std::vector<std::string>> rows_;
};

DatasetKind pipes_kind() {
  return make_record_kind("pipes", "files of cells between |", {".pipes"},
                          [](const CsvFileOptions&, const std::string& path) {
                            return std::make_unique<PipesSource>(path);
                          });
}

/// Counts from `first`.
class Counter final : public Dataset {
 public:
  Counter(int64_t first, int64_t size) : first_(first), size_(size) {
    fields_.push_back({.name = "x", .dtype = DType::kI64});
  }
  int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext&, Sample& out) const override {
    out.resize(1);
    out[0].reset(DType::kI64, {});
    *out[0].data<int64_t>() = first_ + index;
  }
  std::string location(int64_t index, int64_t, int64_t) const override { return str(index); }

 private:
  int64_t first_, size_;
  std::vector<Field> fields_;
};

DatasetKind counter_kind() {
  return {.name = "counter",
          .keys =
              [] {
                config::Schema s;
                s.add("first", config::Spec::integer().fallback("0").doc("of the numbers"))
                    .add("size", config::Spec::integer().at_least(1).required().doc("samples"));
                return s;
              },
          .read = [](const config::Section& s) -> DatasetSource {
            const int64_t first = s.integer("first"), size = s.integer("size");
            return OwnSource{.kind = "counter",
                             .open = [=] { return std::make_shared<Counter>(first, size); }};
          }};
}

class DatasetKinds : public ::testing::Test {
 protected:
  void SetUp() override {
    dataset_kinds().add({pipes_kind(), counter_kind()}, {"plugin.so"});
    path_ = (std::filesystem::temp_directory_path() / str("kinds-", getpid(), ".pipes")).string();
    write_file_atomically(path_, "size|color\n1|blue\n2|red\n3|blue\n");
  }
  void TearDown() override {
    dataset_kinds().remove({"pipes", "counter"});
    std::filesystem::remove(path_);
  }
  static DatasetOptions read(const std::string& yaml) {
    config::Diagnostics diagnostics;
    config::Node node = config::parse_document(yaml, "data.yaml");
    dataset_spec().resolve(node, "train", diagnostics);
    diagnostics.raise();
    return read_dataset(config::Section(node));
  }
  static std::vector<double> values(const Dataset& dataset, const std::string& field) {
    std::vector<double> out;
    Sample sample;
    for (int64_t i = 0; i < dataset.size(); ++i) {
      dataset.read(i, {}, sample);
      out.push_back(sample[static_cast<size_t>(dataset.find_field(field))].number(0));
    }
    return out;
  }
  std::string path_;
};

using Values = std::vector<double>;

TEST_F(DatasetKinds, OfRecordsGetFieldsAndVocabularies) {
  const DatasetOptions options = read("{kind: pipes, path: " + path_ + ", range: [0, 2]}");
  EXPECT_EQ(kind_of(options), "pipes");
  const DatasetPtr data = make_dataset(options);
  EXPECT_EQ(values(*data, "size"), (Values{1, 2}));
  EXPECT_EQ(values(*data, "color"), (Values{2, 0}));
  EXPECT_EQ(data->fields()[1].classes, (std::vector<std::string>{"red", "green", "blue"}));
  EXPECT_THROW(read("{kind: pipes}"), Error);
}

TEST_F(DatasetKinds, AreRecognizedByTheEndingOfAFile) {
  EXPECT_EQ(record_kind_of("a.pipes", "csv"), "pipes");
  EXPECT_EQ(record_kind_of("a.PIPES", "csv"), "pipes");
  EXPECT_EQ(record_kind_of("a.txt", "slots"), "slots");
  EXPECT_EQ(record_kind_of("a.txt", "jsonl"), "csv");
  EXPECT_EQ(record_kind_of("a.unknown", "jsonl"), "jsonl");
  DatasetOptions csv;
  csv.source = CsvFileOptions{.path = "a.csv"};
  EXPECT_EQ(values(*make_dataset(of_file(csv, path_)), "size"), (Values{1, 2, 3}));
}

TEST_F(DatasetKinds, MayHaveADatasetOfTheirOwn) {
  const DatasetOptions options = read(
      "{kind: counter, first: 5, size: 4, split: {a: 0.5, b: 0.5}, part: b, "
      "split_in_order: true}");
  EXPECT_EQ(kind_of(options), "counter");
  EXPECT_EQ(values(*make_dataset(options), "x"), (Values{7, 8}));
  EXPECT_THROW(of_file(options, path_), Error);
}

TEST_F(DatasetKinds, AreSourcesOfAMixture) {
  const DatasetPtr data = make_dataset(
      read("{kind: mixture, sources: {a: {kind: counter, size: 2}, b: {kind: counter, first: 7, "
           "size: 1}}}"));
  EXPECT_EQ(data->size(), 3);
}

TEST_F(DatasetKinds, AreRegisteredOnce) {
  EXPECT_THROW(dataset_kinds().add({counter_kind()}, {"other.so"}), Error);
  EXPECT_THROW(record_kind("counter"), Error);
  EXPECT_THROW(record_kind("nothing"), Error);
}

}  // namespace
}  // namespace paddle::data
