// Any bytes as a file of each kind of records, and as COCO's annotations.

#include "data/dataset_kind.h"
#include "fuzz/fuzz_target.h"

namespace {

using namespace paddle;

void read_all_samples(data::DatasetOptions options) {
  fuzz::expect_documented_end([&] {
    const data::DatasetPtr dataset = data::make_dataset(options);
    data::Sample sample;
    for (int64_t i = 0; i < std::min<int64_t>(dataset->size(), 100); ++i)
      fuzz::expect_documented_end([&] { dataset->read(i, {}, sample); });
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = fuzz::input_file({data, size}, "x.records");
  for (const auto& kind : data::dataset_kinds().all()) {
    if (!kind->open) continue;
    data::CsvFileOptions records;
    records.format = kind->name;
    if (kind->name == "slots") records.column_names = {"a", "b", "c"};
    records.path = path;
    data::DatasetOptions options;
    options.source = records;
    read_all_samples(options);
    data::CsvField numbers, labels;
    numbers.name = "a", numbers.kind = data::ColumnKind::kNumbers, numbers.shape = {2};
    labels.name = "b", labels.kind = data::ColumnKind::kMultiLabel;
    records.fields = {numbers, labels};
    options.source = records;
    read_all_samples(options);
  }
  data::BoxOptions boxes;
  boxes.annotations = path;
  data::DatasetOptions options;
  options.source = boxes;
  read_all_samples(options);
  return 0;
}
