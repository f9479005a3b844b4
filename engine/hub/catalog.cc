#include "hub/catalog.h"

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "base/text.h"
#include "config/schema.h"
#include "hub/huggingface.h"

namespace paddle::hub {
namespace {

using config::Schema;
using config::Section;
using config::Spec;

Schema weights_schema() {
  Schema s;
  s.add("description", Spec::text().required().doc("what it is, in a sentence"))
      .add("license", Spec::text().required().doc("of the weights"))
      .add("model", Spec::text().required().doc("the model file[:variant] that takes them"))
      .add("rules", Spec::text().doc("the rules that rename them, for paddle convert --map"))
      .add("files", data::remote_files_spec().required());
  return s;
}

/// models/pretrained.yaml; "" if no folder models/ is found.
std::string catalog_file() {
  for (const std::string& folder : data::shared_folders("models"))
    if (const std::string path = join_path(folder, "pretrained.yaml"); file_exists(path))
      return path;
  return "";
}

}  // namespace

std::vector<Weights> list_weights() {
  std::vector<Weights> out;
  const std::string path = catalog_file();
  if (path.empty()) return out;
  config::Diagnostics diagnostics;
  config::Node document = config::read_document(path, diagnostics);
  Schema all;
  for (const config::Entry& e : document.entries)
    all.add(e.key.text, Spec::map(weights_schema()).doc("published weights"));
  all.resolve(document, "", diagnostics);
  diagnostics.raise();
  for (const config::Entry& e : document.entries) {
    const Section s(e.value);
    Weights& one = out.emplace_back();
    one.name = e.key.text;
    one.description = s.text("description");
    one.license = s.text("license");
    one.model = s.text("model");
    if (s.has("rules")) one.rules = s.text("rules");
    one.files = data::read_remote_files(s);
  }
  std::sort(out.begin(), out.end(),
            [](const Weights& a, const Weights& b) { return a.name < b.name; });
  return out;
}

std::optional<Weights> find_weights(const std::string& name) {
  for (Weights& each : list_weights())
    if (each.name == name) return std::move(each);
  return std::nullopt;
}

Download download_of(const data::RemoteFile& file, const std::string& folder) {
  const char* const mirror = std::getenv("PADDLE_HUB");
  return {.url = mirror && *mirror ? str(hub_address(), "/files/", file.path) : file.url,
          .file = join_path(folder, file.path),
          .size = file.size,
          .sha256 = file.sha256};
}

}  // namespace paddle::hub
