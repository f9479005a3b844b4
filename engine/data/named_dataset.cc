#include "data/named_dataset.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "base/sha256.h"
#include "config/overrides.h"
#include "data/config/dataset_config.h"
#include "data/passes.h"
#include "data/related_datasets.h"

namespace paddle::data {
namespace {

namespace fs = std::filesystem;
using config::Node;
using config::Schema;
using config::Section;
using config::Spec;

/// The file of a description. kConfig if there is none.
std::string find_description(const std::string& name, const std::string& near) {
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".yaml");
  if (is_path) {
    const std::string path = fs::path(name).is_absolute() ? name : join_path(near, name);
    if (!file_exists(path))
      fail(ErrorCode::kConfig, "no such file: '", path, "', which describes a dataset");
    return path;
  }
  for (const std::string& folder : shared_folders("datasets"))
    if (const std::string path = join_path(folder, name + ".yaml"); file_exists(path)) return path;
  const std::vector<std::string> names = dataset_names();
  fail(ErrorCode::kConfig, "no dataset is called '", name, "'", did_you_mean(name, names),
       names.empty() ? "; no folder datasets/ was found" : "; there are: " + join(names, ", "));
}

/// The document of a description, checked.
Node read_document_of(const std::string& path) {
  config::Diagnostics diagnostics;
  Node document = config::read_document(path, diagnostics);
  description_schema().resolve(document, "", diagnostics);
  diagnostics.raise();
  return document;
}

void expand(Node& dataset, const std::string& section) {
  const Node* kind = dataset.find("kind");
  if (!dataset.is_map() || !kind || kind->text != "dataset") {
    if (Node* sources = dataset.find("sources"))
      for (config::Entry& e : sources->entries) expand(e.value, section);
    return;
  }
  const Node* name = dataset.find("name");
  if (!name || !name->is_scalar()) return;  // the schema reports it
  const Node* from = dataset.find("from");
  const std::string part = from ? from->text : section;
  std::string near = ".";
  const auto from_file = name->source_kind();
  if (from_file == config::SourceKind::kYaml || from_file == config::SourceKind::kJson)
    near = fs::path(name->location().file).parent_path().string();
  Node base;
  std::vector<std::string> names;
  try {
    const Node document = read_document_of(find_description(name->text, near));
    for (const config::Entry& e : document.find("parts")->entries) {
      names.push_back(e.key.text);
      if (e.key.text == part) base = e.value;
    }
  } catch (const Error& e) {
    if (!e.location().text().empty()) throw;
    throw Error(e.code(), e.message(), name->location());
  }
  if (base.is_null())
    throw Error(ErrorCode::kConfig,
                "the dataset '" + name->text + "' has no part '" + part + "'" +
                    did_you_mean(part, names) + "; there are: " + join(names, ", ") +
                    " (`from` chooses one)",
                from ? from->location() : name->location());
  for (const config::Entry& e : dataset.entries) {
    const std::string& key = e.key.text;
    if (key != "kind" && key != "name" && key != "from") base.set(key, e.value);
  }
  dataset = std::move(base);
}

std::vector<std::pair<std::string, std::string>> texts_of(const Section& s, const char* key) {
  std::vector<std::pair<std::string, std::string>> out;
  if (s.has(key))
    for (const config::Entry& e : s.at(key).entries) out.emplace_back(e.key.text, e.value.text);
  return out;
}

}  // namespace

Spec remote_files_spec() {
  Schema file;
  file.add("path", Spec::text().required().doc("the file below the folder of the download"))
      .add("url", Spec::text().required().doc("where it is published"))
      .add("size", Spec::integer().at_least(0).doc("in bytes"))
      .add("sha256", Spec::text().doc("its digits, or at least the first 8 of them"));
  return Spec::list(Spec::map(file)).doc("what `paddle get` downloads");
}

std::vector<RemoteFile> read_remote_files(const Section& section) {
  std::vector<RemoteFile> out;
  if (!section.has("files")) return out;
  for (const Section& s : section.sections("files")) {
    RemoteFile& file = out.emplace_back();
    file.path = s.text("path");
    file.url = s.text("url");
    if (s.has("size")) file.size = static_cast<uint64_t>(s.integer("size"));
    if (s.has("sha256")) file.sha256 = s.text("sha256");
    const auto wrong = [&](const char* key, const std::string& expected) {
      throw Error(ErrorCode::kConfig, str(key, ": expected ", expected), s.location(key));
    };
    const fs::path path = fs::path(file.path).lexically_normal();
    if (path.empty() || path.is_absolute() || *path.begin() == ".." || !path.has_filename() ||
        file.path != printable(file.path))
      wrong("path", "a file below the folder of the download");
    if (!file.url.starts_with("https://") && !file.url.starts_with("http://"))
      wrong("url", "an address that begins with https://");
    if (!file.sha256.empty() && !is_sha256_prefix(file.sha256))
      wrong("sha256", "8 to 64 hexadecimal digits");
  }
  return out;
}

std::string packages_text(const std::vector<std::pair<std::string, std::string>>& packages) {
  std::vector<std::string> out;
  for (const auto& [kind, name] : packages) out.push_back(str(name, " (", kind, ")"));
  return join(out, ", ");
}

Schema description_schema() {
  Schema s;
  s.add("description", Spec::text().required().doc("what it is, in a sentence"))
      .add("license", Spec::text().required().doc("of the data"))
      .add("source", Spec::text().doc("who made it, or where it is published"))
      .add("packages", Spec::map_of(Spec::text()).doc("what brings the files: debian, pypi"))
      .add("files", remote_files_spec())
      .add("fields", Spec::map_of(Spec::text()).doc("the fields and what they mean"))
      // Parts are checked where they are used, after the config's keys are laid over them.
      .add("parts",
           Spec::map_of(Spec::any()).required().doc("datasets by name: train, valid, test"));
  return s;
}

void add_named_keys(Schema& s) {
  s.add("name", Spec::text().required().doc("of a description in datasets/, or its file"));
  s.add("from", Spec::text().doc("the part of the description; default: that of this section"));
}

std::vector<std::string> shared_folders(const std::string& name) {
  std::vector<std::string> out;
  const auto add = [&](const fs::path& folder) {
    const std::string text = folder.lexically_normal().string();
    if (is_directory(text) && std::find(out.begin(), out.end(), text) == out.end())
      out.push_back(text);
  };
  std::error_code ignored;
  for (fs::path at = fs::current_path(ignored);; at = at.parent_path()) {
    add(at / name);
    if (at == at.parent_path()) break;
  }
  const fs::path bin = fs::path(program_path()).parent_path();
  add(bin / ".." / ".." / name);
  add(bin / ".." / "share" / "paddle" / name);
  return out;
}

std::vector<std::string> dataset_names() {
  std::set<std::string> out;
  for (const std::string& folder : shared_folders("datasets"))
    for (const std::string& name : list_directory(folder))
      if (name.ends_with(".yaml") && !name.starts_with('.'))
        out.insert(name.substr(0, name.size() - 5));
  return {out.begin(), out.end()};
}

DatasetDescription read_description(const std::string& name, const std::string& near) {
  DatasetDescription out;
  out.file = find_description(name, near);
  out.name = fs::path(out.file).stem().string();
  const Node document = read_document_of(out.file);
  const Section s(document);
  out.description = s.text("description");
  out.license = s.text("license");
  if (s.has("source")) out.source = s.text("source");
  out.packages = texts_of(s, "packages");
  out.fields = texts_of(s, "fields");
  for (const config::Entry& e : s.at("parts").entries) {
    config::Diagnostics diagnostics;
    Node part = e.value;
    dataset_spec().resolve(part, "parts." + e.key.text, diagnostics);
    diagnostics.raise();
    out.parts.emplace_back(e.key.text, read_dataset(Section(part)));
  }
  return out;
}

std::optional<DatasetOrigin> find_dataset_origin(const std::string& name) {
  const std::vector<std::string> names = dataset_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
  const Node document = read_document_of(find_description(name, "."));
  const Section s(document);
  return DatasetOrigin{s.text("description"), s.text("license"), texts_of(s, "packages"),
                       read_remote_files(s)};
}

std::string dataset_with_file(const std::string& path) {
  for (const std::string& name : dataset_names()) {
    const auto source = find_dataset_origin(name);
    const auto has = [&](const RemoteFile& file) { return file.path == path; };
    if (source && std::any_of(source->files.begin(), source->files.end(), has)) return name;
  }
  return "";
}

void expand_datasets(Node& section, config::Diagnostics& diagnostics) {
  expand_related(section, diagnostics);
  expand_passes(section);
  for (const char* part : {"train", "valid", "test"})
    if (Node* dataset = section.find(part); dataset && dataset->is_map())
      diagnostics.guard([&] { expand(*dataset, part); });
}

}  // namespace paddle::data
