#include "quant/output.h"

#include <algorithm>

#include "base/files.h"
#include "program/folders.h"

namespace paddle::quant {

namespace fs = std::filesystem;

infer::InputOptions data_of(const infer::InputOptions& given, const program::Model& model,
                            const char* part) {
  if (!given.paths.empty() || !given.data.empty()) return given;
  const auto run = infer::run_data(model);
  infer::InputOptions out = given;
  if (run && (std::string_view(part) == "train" || run->valid)) out.data = part;
  return out;
}

bool is_given(const infer::InputOptions& options) {
  return !options.paths.empty() || !options.data.empty();
}

Paths::Paths(const std::string& output)
    : only_file(output.ends_with(".onnx")),
      base(only_file ? fs::path(output).parent_path() : fs::path(output)),
      file(only_file ? fs::path(output).filename().string() : "model.onnx") {
  if (base.empty()) base = ".";
  partial = base / ("." + file + ".partial");
}

fs::path Paths::report(const char* kind) const {
  return base / (only_file ? file + "." + kind : std::string(kind));
}

bool Paths::is_interrupted() const { return fs::exists(partial); }

bool Paths::is_model(const fs::path& path) const {
  const std::string name = path.filename().string();
  return name == file || name == file + ".data" || name == "model";
}

void Paths::begin(bool resume) const {
  if (!resume) {
    fs::remove_all(partial);
    fs::remove(report("progress.json"));
  }
  ensure_directory(partial.string());
}

void Paths::abandon() const {
  std::error_code ignored;
  fs::remove_all(partial, ignored);
  if (!only_file) fs::remove(base, ignored);  // unless it has files
}

namespace {

/// Moves a file or a folder over what is in its place.
void move_over(const fs::path& from, const fs::path& to) {
  if (fs::is_directory(from))
    program::put_in_place(from, to);
  else
    fs::rename(from, to);
}

/// A second name for a file or the files of a folder, which are replaced and never changed; copies
/// where the file system has no links.
void link_files(const fs::path& from, const fs::path& to) {
  fs::remove_all(to);
  std::error_code error;
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::create_hard_links, error);
  if (!error) return;
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& each : fs::directory_iterator(folder)) out.push_back(each.path());
  return out;
}

}  // namespace

void with_disk_errors(const std::function<void()>& code) {
  try {
    code();
  } catch (const fs::filesystem_error& e) {
    fail(ErrorCode::kDevice, e.path1().string(), ": ", e.code().message());
  }
}

void Paths::publish(bool accepted) const {
  with_disk_errors([&] {
    const fs::path to = accepted ? base : base / "best";
    ensure_directory(to.string());
    std::vector<fs::path> moved = entries(partial);
    // An output with its ONNX file is complete.
    std::stable_partition(moved.begin(), moved.end(),
                          [&](const fs::path& path) { return path.filename() != file; });
    for (const fs::path& each : moved) {
      if (each == begun_statistics() || each == decisions()) continue;
      if (each == statistics() && only_file) continue;
      move_over(each, (is_model(each) ? to : base) / each.filename());
    }
    program::remove_folder(partial);
  });
}

void Paths::keep_best() const {
  with_disk_errors([&] {
    const fs::path next = base / ".best.partial";
    fs::remove_all(next);
    ensure_directory(next.string());
    for (const fs::path& each : entries(partial))
      if (is_model(each) || each.filename() == report("report.json").filename())
        link_files(each, next / each.filename());
    program::put_in_place(next, base / "best");
  });
}

void Paths::take_best() const {
  with_disk_errors([&] {
    for (const fs::path& each : entries(base / "best")) {
      if (!is_model(each)) continue;
      const fs::path beside = partial / (".new-" + each.filename().string());
      link_files(each, beside);
      move_over(beside, partial / each.filename());
    }
  });
}

void check_output(const std::string& output, bool overwrite) {
  if (const Paths paths(output); overwrite && !paths.only_file && is_directory(output) &&
                                 !paths.is_interrupted() &&
                                 !fs::exists(paths.report("report.json")))
    for (const char* name : {"model", "best"})
      if (fs::exists(fs::path(output) / name))
        fail(ErrorCode::kUsage, output, "/", name,
             ": exists and was not written by paddle-quant; choose another --output");
  if (overwrite || (!file_exists(output) && !is_directory(output))) return;
  if (const Paths paths(output); !paths.only_file && paths.is_interrupted())
    fail(ErrorCode::kUsage, output,
         ": has a job that was interrupted (--resume continues it, --overwrite starts again)");
  fail(ErrorCode::kUsage, output, ": already exists (--overwrite replaces it)");
}

}  // namespace paddle::quant
