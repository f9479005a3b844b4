// Any bytes as the cells of fields of every kind, on their way into batches: read, checked for
// numbers that are not finite, reported and compared. The first byte chooses the form of the file.

#include <algorithm>

#include "data/dataset_kind.h"
#include "data/loader.h"
#include "data/options.h"
#include "data/report.h"
#include "data/scan.h"
#include "fuzz/fuzz_target.h"

namespace {

using namespace paddle;
using data::ColumnKind;
using data::CsvField;

CsvField field(const std::string& name, ColumnKind kind) {
  CsvField out;
  out.name = name;
  out.kind = kind;
  return out;
}

/// The kinds of records. The first ones are those that seeds choose by their first byte.
std::vector<std::string> all_kinds() {
  std::vector<std::string> out = {"csv", "jsonl", "tar", "slots"};
  for (const auto& kind : data::dataset_kinds().all())
    if (kind->open && std::find(out.begin(), out.end(), kind->name) == out.end())
      out.push_back(kind->name);
  return out;
}

/// Each kind of field, with the options that change how its cells are read.
std::vector<CsvField> all_fields() {
  std::vector<CsvField> out;
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kI64, DType::kU8}) {
    CsvField numeric = field("a", ColumnKind::kNumeric), numbers = field("a", ColumnKind::kNumbers);
    numeric.dtype = numbers.dtype = dtype;
    numbers.shape = {3};
    out.push_back(numbers);
    numbers.shape = {10, 10};
    out.push_back(numbers);
    out.push_back(numeric);
    if (!is_float(dtype)) continue;
    numeric.scaling = data::Scaling::kStandard;
    numeric.log = true;
    numeric.missing = data::MissingPolicy::kNan;
    out.push_back(numeric);
    numeric.columns = {"a", "b"};
    numeric.missing = data::MissingPolicy::kFill;
    out.push_back(numeric);
  }
  CsvField categories = field("a", ColumnKind::kCategorical);
  out.push_back(categories);
  categories.dtype = DType::kU8;
  categories.unknown_is_zero = true;
  out.push_back(categories);
  categories.columns = {"a", "b"};
  categories.dtype.reset();
  categories.unknown_is_zero = false;
  categories.buckets = 7;
  categories.per_column = true;
  out.push_back(categories);
  for (const data::TokenKind tokens :
       {data::TokenKind::kWords, data::TokenKind::kSpaces, data::TokenKind::kCharacters}) {
    CsvField words = field("a", ColumnKind::kText);
    words.tokens = tokens;
    words.max_length = 5;
    out.push_back(words);
  }
  for (const ColumnKind kind :
       {ColumnKind::kImage, ColumnKind::kMask, ColumnKind::kAudio, ColumnKind::kMultiLabel}) {
    out.push_back(field("a", kind));
    out.back().sample_rate = kind == ColumnKind::kAudio ? 8000 : 0;
    out.back().max_length = 4000;
  }
  return out;
}

/// Settings that the data rule out (kConfig) are a right end here, too.
void run(const std::function<void()>& body) {
  fuzz::expect_documented_end([&] {
    try {
      body();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kConfig) throw;
    }
  });
}

void use(const data::DatasetOptions& options) {
  run([&] {
    const data::DatasetPtr dataset = data::make_dataset(options);
    if (dataset->size() > 100) return;
    for (const auto nan : {data::NanPolicy::kError, data::NanPolicy::kSkip, data::NanPolicy::kKeep})
      run([&] {
        data::LoaderOptions loading;
        loading.batch_size = 3;
        loading.epochs = 1;
        loading.nan = nan;
        loading.max_bad_rate = 1;
        if (nan != data::NanPolicy::kError) loading.on_bad_sample = data::BadSamplePolicy::kSkip;
        for (const data::Field& each : dataset->fields())
          if (is_integer(each.dtype) && each.kind == data::FieldKind::kPlain)
            loading.ranges.push_back({each.name, 0, 3});
        data::Loader loader(dataset, loading);
        data::scan_samples(loader, {});
        while (const auto batch = loader.next())
          for (const Array& array : batch->arrays) fuzz::read_all(array);
      });
    run([&] { data::check_data(*dataset).text(); });
    run([&] { data::find_duplicates(*dataset, *dataset); });
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 100'000) return 0;
  static const std::vector<std::string> kKinds = all_kinds();
  data::CsvFileOptions records;
  records.format = kKinds[data[0] % kKinds.size()];
  records.path = fuzz::input_file({data + 1, size - 1}, "x.records");
  if (records.format == "slots") records.column_names = {"a", "b"};
  for (const CsvField& each : all_fields()) {
    records.fields = {each};
    data::DatasetOptions options;
    options.source = records;
    use(options);
  }
  data::SeriesOptions series;
  series.file = records;
  series.file.fields.clear();
  series.targets = {"a"};
  series.history = 2;
  series.scaling = data::Scaling::kStandard;
  data::DatasetOptions options;
  options.source = series;
  use(options);
  return 0;
}
