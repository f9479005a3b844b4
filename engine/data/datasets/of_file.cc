// Another file or folder in the place of that of a dataset.

#include <filesystem>

#include "base/files.h"
#include "data/dataset_kind.h"
#include "formats/compressed/compressed.h"

namespace paddle::data {
namespace {

std::string ending_of(const std::string& path) {
  return lowercase(std::filesystem::path(formats::uncompressed_name(path)).extension().string());
}

void put_path(CsvFileOptions& options, const std::string& path) {
  if (!options.line_files.empty())
    fail(ErrorCode::kUsage, path, ": the data are several parallel files; name them in a config");
  options.format = record_kind_of(path, options.format);
  options.path = path;
  options.more_paths.clear();
}

}  // namespace

DatasetOptions of_file(const DatasetOptions& like, const std::string& path) {
  DatasetOptions out;
  out.source = like.source;
  out.scales = like.scales;
  const auto expect = [&](bool fits, const char* what) {
    if (!fits)
      fail(ErrorCode::kUsage, path, ": the data is of kind ", kind_of(like), ", expected ", what);
  };
  const bool is_folder = is_directory(path);
  if (auto* records = std::get_if<CsvFileOptions>(&out.source)) {
    expect(!is_folder, "a file");
    put_path(*records, path);
  } else if (auto* series = std::get_if<SeriesOptions>(&out.source)) {
    expect(!is_folder, "a file");
    put_path(series->file, path);
  } else if (auto* npz = std::get_if<NpzOptions>(&out.source)) {
    expect(!is_folder && ending_of(path) == ".npz", "an .npz file");
    npz->path = path;
  } else if (auto* hdf5 = std::get_if<Hdf5Options>(&out.source)) {
    expect(!is_folder, "an HDF5 file");
    hdf5->path = path;
  } else if (auto* text = std::get_if<TextOptions>(&out.source)) {
    expect(!is_folder, "a file");
    text->path = path;
    text->more_paths.clear();
  } else if (auto* tokens = std::get_if<TokensOptions>(&out.source)) {
    expect(!is_folder, "a file");
    tokens->path = path;
    tokens->more_paths.clear();
  } else if (auto* chat = std::get_if<ChatOptions>(&out.source)) {
    expect(!is_folder, "a file");
    chat->path = path;
    chat->more_paths.clear();
  } else if (auto* images = std::get_if<ImageFolderOptions>(&out.source)) {
    expect(is_folder, "a folder with a folder of images for each class");
    images->path = path;
    images->files.clear();
  } else if (auto* boxes = std::get_if<BoxOptions>(&out.source)) {
    const bool is_coco = boxes->format == BoxOptions::Format::kCoco;
    expect(is_folder != is_coco, is_coco ? "a COCO file (.json)" : "a folder of images");
    if (is_coco) {
      boxes->annotations = path;
    } else {
      boxes->images = path;
      boxes->labels.clear();
    }
  } else if (auto* own = std::get_if<OwnSource>(&out.source); own && own->of_file) {
    *own = own->of_file(path);
  } else {
    fail(ErrorCode::kUsage, path, ": data of kind ", kind_of(like),
         " is not one file; name it in a config");
  }
  return out;
}

}  // namespace paddle::data
