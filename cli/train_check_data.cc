#include "train_check_data.h"

#include "common.h"
#include "data/open_data.h"
#include "data/pictures.h"
#include "data/report.h"
#include "data/scan.h"

namespace paddle::cli {
namespace {

struct Part {
  const char* name;
  data::DatasetPtr dataset;
  data::Loader* loader;
  const data::LoaderOptions* options;
};

/// Reads all samples, and prints the bad ones.
void scan(const Part& part, const std::vector<std::string>& inputs) {
  constexpr size_t kShown = 20;
  if (part.dataset->paths().empty()) return;  // drawn samples have no faults of files
  data::ScanOptions options;
  options.class_fields = data::class_fields_of(*part.dataset, inputs);
  const data::ScanResult result = data::scan_samples(*part.loader, options);
  print(str("looked at: ", result.extent(), ", ", result.bad_count, " are bad\n"));
  for (size_t i = 0; i < std::min(kShown, result.bad.size()); ++i)
    print(str("bad: ", result.bad[i].reason, "\n"));
  if (result.bad_count > static_cast<int64_t>(kShown))
    print(str("bad: ", result.bad_count - static_cast<int64_t>(kShown), " more\n"));
  for (const std::string& line :
       data::check_contents(result, *part.dataset, false, std::nullopt, part.name))
    print_warning(line);
  for (const std::string& line : data::check_bad_samples(result, *part.options, part.name))
    print_warning(line);
}

void show(const Part& part, const std::vector<std::string>& inputs) {
  print(std::string(part.name) + "\n" + data::check_data(*part.dataset).text());
  scan(part, inputs);
  part.loader->next();  // what mixes a batch is checked with the first one
  for (const data::Field& field : part.loader->fields()) print(str("in a batch: ", field, "\n"));
  for (const std::string& line : part.dataset->warnings()) print_warning(line);
}

/// Samples whose contents another part has, too.
void warn_duplicates(const data::OpenData& opened, const train::RunConfig& config) {
  // Windows of one text share their contents by design, and drawn samples have no files.
  const auto& source = config.data.train.source;
  if (opened.train->paths().empty() || std::holds_alternative<data::TextOptions>(source) ||
      std::holds_alternative<data::SeriesOptions>(source))
    return;
  const std::tuple<const char*, data::DatasetPtr, const char*, data::DatasetPtr> pairs[] = {
      {"valid", opened.valid, "train", opened.train},
      {"test", opened.test, "train", opened.train},
      {"test", opened.test, "valid", opened.valid}};
  for (const auto& [part, dataset, other, other_dataset] : pairs)
    if (dataset && other_dataset)
      if (const auto same =
              data::find_duplicates(*dataset, *other_dataset, train::model_inputs(config));
          same.count > 0)
        print_warning(same.text(part, other));
}

}  // namespace

void check_data(const train::RunConfig& config, const std::string& pictures) {
  data::DataConfig data = config.data;
  for (data::LoaderOptions* options : {&data.loader, &data.valid_loader}) {
    options->workers = 0;
    options->shuffle = false;
  }
  const data::OpenData opened = data::open_data(config.document, data);
  for (const std::string& line : opened.warnings) print_warning(line);
  const std::vector<std::string> inputs = train::model_inputs(config);
  show({"train", opened.train, opened.train_loader.get(), &data.loader}, inputs);
  if (opened.valid)
    show({"valid", opened.valid, opened.valid_loader.get(), &data.valid_loader}, inputs);
  if (opened.test)
    show({"test", opened.test, opened.test_loader.get(), &data.valid_loader}, inputs);
  warn_duplicates(opened, config);
  if (pictures.empty()) return;
  for (data::Loader* loader : {opened.train_loader.get(), opened.valid_loader.get()})
    if (loader) loader->seek({});
  constexpr int64_t kMax = 24;
  print("pictures: " +
        data::write_pictures(
            pictures, {{"train", opened.train_loader.get()}, {"valid", opened.valid_loader.get()}},
            kMax) +
        "\n");
}

}  // namespace paddle::cli
