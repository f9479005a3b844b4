// paddle-get NAME|URL|hf:OWNER/NAME: downloads a data set, weights, a file, or the files of a
// repository.

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/interrupt.h"
#include "base/sha256.h"
#include "base/text.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "common_progress.h"
#include "data/data_folder.h"
#include "hub/catalog.h"
#include "hub/huggingface.h"
#include "sections/sections.h"

namespace {

using namespace paddle;
using nlohmann::ordered_json;

struct GetOptions {
  std::string what, output, sha256;
  std::vector<std::string> only;
  bool overwrite = false, dry_run = false, json = false, list = false;
};

/// The files to download, and hints for the user.
struct Plan {
  std::vector<hub::Download> files;
  std::string folder;
  std::vector<std::string> next = {};  ///< lines for the user
};

bool is_url(const std::string& text) {
  return text.starts_with("https://") || text.starts_with("http://");
}

/// The last part of a URL's path.
std::string file_name(const std::string& url) {
  const std::string path = url.substr(0, url.find_first_of("?#"));
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name.empty() || name == "." || name == ".." || path.find('/', 8) == std::string::npos ||
      name != printable(name))
    fail(ErrorCode::kUsage, url, ": does not end in a file name");
  return name;
}

void require_no_patterns(const GetOptions& options) {
  if (!options.only.empty())
    fail(ErrorCode::kUsage, "--only is for repositories (hf:OWNER/NAME), not for ", options.what);
}

Plan plan_url(const GetOptions& options) {
  require_no_patterns(options);
  Plan plan{.files = {}, .folder = options.output.empty() ? "." : options.output};
  plan.files.push_back({.url = options.what,
                        .file = join_path(plan.folder, file_name(options.what)),
                        .sha256 = options.sha256});
  return plan;
}

Plan plan_repository(const GetOptions& options) {
  const hub::Repository repository = hub::parse_repository(options.what);
  Plan plan{.files = {}, .folder = options.output};
  if (plan.folder.empty()) plan.folder = repository.name.substr(repository.name.find('/') + 1);
  const auto chosen = hub::choose_files(repository, hub::list_files(repository), options.only);
  for (const hub::HubFile& file : chosen)
    plan.files.push_back(hub::download_of(repository, file, plan.folder));
  if (!repository.is_dataset) {
    const std::string model =
        chosen.size() == 1 && chosen[0].path.ends_with(".gguf") ? plan.files[0].file : plan.folder;
    plan.next.push_back(str("generate text with `paddle infer ", model, " --prompt TEXT`"));
  }
  return plan;
}

std::vector<std::string> known_names() {
  std::vector<std::string> out;
  for (const hub::Weights& each : hub::list_weights()) out.push_back(each.name);
  for (const std::string& name : data::dataset_names()) out.push_back(name);
  return out;
}

Plan plan_name(const GetOptions& options) {
  require_no_patterns(options);
  if (const auto weights = hub::find_weights(options.what)) {
    Plan plan{.files = {}, .folder = options.output.empty() ? "." : options.output};
    for (const data::RemoteFile& file : weights->files)
      plan.files.push_back(hub::download_of(file, plan.folder));
    const std::string out = join_path(plan.folder, weights->name + ".safetensors");
    plan.next.push_back(str("convert them with `paddle convert ", plan.files.at(0).file, " ", out,
                            weights->rules.empty() ? "" : " --map models/" + weights->rules,
                            "`, for models/", weights->model, "; license: ", weights->license));
    return plan;
  }
  const auto source = data::find_dataset_origin(options.what);
  if (!source) {
    const std::vector<std::string> names = known_names();
    fail(ErrorCode::kUsage, "nothing is called '", options.what, "'",
         did_you_mean(options.what, names), "; `paddle get --list` shows all names");
  }
  if (source->files.empty()) {
    const std::string packages = data::packages_text(source->packages);
    fail(ErrorCode::kUsage, "the data set '", options.what, "' has nothing to download; ",
         packages.empty() ? "`paddle data " + options.what + "` says where its files are expected"
                          : "its files come with the package " + packages);
  }
  Plan plan{.files = {}, .folder = options.output.empty() ? data::data_folder() : options.output};
  for (const data::RemoteFile& file : source->files)
    plan.files.push_back(hub::download_of(file, plan.folder));
  plan.next.push_back(str("configs name it as `{kind: dataset, name: ", options.what,
                          "}`; license: ", source->license));
  if (!options.output.empty())
    plan.next.push_back(str("set PADDLE_DATA=", options.output, " for configs that use data://"));
  return plan;
}

int list_names(bool json) {
  struct Row {
    std::string name, kind, description;
  };
  std::vector<Row> rows;
  for (const std::string& name : data::dataset_names())
    if (const auto source = data::find_dataset_origin(name); source && !source->files.empty())
      rows.push_back({name, "data", source->description});
  for (const hub::Weights& each : hub::list_weights())
    rows.push_back({each.name, "weights", each.description});
  if (json) {
    ordered_json names = ordered_json::array();
    for (const Row& row : rows)
      names.push_back({{"name", row.name}, {"kind", row.kind}, {"description", row.description}});
    cli::print(ordered_json({{"names", names}}).dump() + "\n");
    return 0;
  }
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  for (const Row& row : rows)
    cli::print_line(str(row.name, std::string(width - row.name.size() + 2, ' '), row.kind,
                        std::string(9 - row.kind.size(), ' '), row.description));
  return 0;
}

ordered_json json_of(const hub::Download& wanted, const hub::Downloaded& got) {
  return {{"file", wanted.file},
          {"bytes", got.bytes},
          {"sha256", got.sha256},
          {"verified", got.verified},
          {"was_there", got.was_there}};
}

/// Downloads one file; false after an interrupt.
bool fetch(const hub::Download& wanted, hub::Downloaded& got) {
  cli::ProgressBar bar;
  got = hub::download(wanted, [&](uint64_t done, std::optional<uint64_t> total) {
    const double share =
        total && *total > 0 ? static_cast<double>(done) / static_cast<double>(*total) : 0;
    bar.draw(share, str(wanted.file, "  ", human_bytes(done),
                        total ? " of " + human_bytes(*total) : std::string()));
    return pending_interrupt() == 0;
  });
  bar.clear();
  if (got.interrupted) {
    cli::print_error(str("stopped; ", human_bytes(got.bytes), " are in ", wanted.file,
                         ".part, and the same command continues"));
    return false;
  }
  cli::print_line(str(wanted.file, ": ", human_bytes(got.bytes), ", SHA-256 ",
                      got.verified ? "is right" : got.sha256,
                      got.was_there ? ", was there already" : ""));
  return true;
}

int run_get(int argc, char** argv) {
  cli::App app{
      "Downloads data sets and weights by name, files by URL, and repositories of the hub."};
  app.footer(
      "Examples: paddle get mnist; paddle get resnet50 -o weights; paddle get "
      "hf:HuggingFaceTB/SmolLM2-135M-Instruct. $PADDLE_HUB names a mirror, $HF_TOKEN a token of "
      "the hub.");
  GetOptions options;
  app.add_option("WHAT", options.what,
                 "a name (--list shows all), the URL of a file, or a repository: "
                 "hf:[datasets/]OWNER/NAME[@REVISION]");
  app.add_option("-o,--output", options.output,
                 "the folder to write to (default: of data sets what PADDLE_DATA names, or "
                 "~/.cache/paddle/data; of repositories ./NAME; otherwise the current one)");
  app.add_option("--only", options.only,
                 "of a repository: only files that match this pattern, such as '*Q4_K_M.gguf'")
      ->allow_extra_args(false);
  app.add_option("--sha256", options.sha256,
                 "of a URL: the SHA-256 that the file must have, or at least its first 8 digits");
  app.add_flag("--overwrite", options.overwrite, "replace other files of the same names");
  app.add_flag("--list", options.list, "list the names");
  app.add_flag("--dry-run", options.dry_run, "print what would be downloaded, write nothing");
  app.add_flag("--json", options.json, "print a JSON object on the last line");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (options.list) return list_names(options.json);
  if (options.what.empty())
    fail(ErrorCode::kUsage, "nothing to download is given; `paddle get --list` shows names");
  if (!options.sha256.empty() && !is_url(options.what))
    fail(ErrorCode::kUsage, "--sha256 is for URLs, not for ", options.what);
  if (!options.sha256.empty() && !is_sha256_prefix(options.sha256))
    fail(ErrorCode::kUsage, "--sha256: expected 8 to 64 hexadecimal digits, found '",
         options.sha256, "'");
  watch_for_interrupts();
  Plan plan = is_url(options.what)              ? plan_url(options)
              : options.what.starts_with("hf:") ? plan_repository(options)
                                                : plan_name(options);
  ordered_json files = ordered_json::array();
  for (hub::Download& file : plan.files) {
    file.overwrite = options.overwrite;
    if (options.dry_run) {
      cli::print_line(str(file.url, " → ", file.file,
                          file.size ? "  " + human_bytes(*file.size) : std::string()));
      files.push_back({{"url", file.url}, {"file", file.file}});
      if (file.size) files.back()["bytes"] = *file.size;
      continue;
    }
    hub::Downloaded got;
    if (!fetch(file, got)) return 128 + pending_interrupt();
    files.push_back(json_of(file, got));
  }
  if (!options.dry_run)
    for (const std::string& line : plan.next) cli::print_line(line);
  if (options.json)
    cli::print(ordered_json({{"folder", plan.folder}, {"files", files}})
                   .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
               "\n");
  return 0;
}

}  // namespace

namespace paddle::cli {

int get_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_get(argc, argv);
  });
}

}  // namespace paddle::cli
