// paddle-verify MODEL: checks the signature of a model.

#include <nlohmann/json.hpp>

#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "convert/signature.h"

namespace {

using namespace paddle;

int run_verify(int argc, char** argv) {
  cli::App app{"Checks that a model is what was signed: no file changed, added or missing."};
  app.footer(
      "Ends with 0 if it is, and with 5 and the cause if it is not. paddle sign signs models.");
  std::string model, key;
  bool json = false;
  app.add_option("MODEL", model, "a model's folder, or one file")->required();
  app.add_option("--public-key", key, "the public key of who signed it, a PEM file")->required();
  app.add_flag("--json", json, "print a JSON object: the number of files");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  const size_t files = convert::verify_model(model, key);
  if (json)
    cli::print(nlohmann::ordered_json({{"valid", true}, {"files", files}}).dump() + "\n");
  else
    cli::print_line(model + ": is what was signed, " + std::to_string(files) +
                    (files == 1 ? " file" : " files"));
  return 0;
}

}  // namespace

namespace paddle::cli {

int verify_command(int argc, char** argv) {
  return run_tool([&] { return run_verify(argc, argv); });
}

}  // namespace paddle::cli
