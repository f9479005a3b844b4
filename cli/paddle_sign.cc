// paddle-sign MODEL: signs the files of a model.

#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "convert/signature.h"

namespace {

using namespace paddle;

int run_sign(int argc, char** argv) {
  cli::App app{"Signs a model: the SHA-256 of all its files, with Ed25519."};
  app.footer(
      "Writes MODEL/signature.json, or FILE.signature.json. Keys: openssl genpkey -algorithm "
      "ed25519 -out private.pem; openssl pkey -in private.pem -pubout -out public.pem. paddle "
      "verify checks the signature.");
  std::string model, key;
  app.add_option("MODEL", model, "a model's folder, or one file")->required();
  app.add_option("--private-key", key, "the private key, a PEM file")->required();
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  const size_t files = convert::sign_model(model, key);
  cli::print_line(convert::signature_path(model) + ": " + std::to_string(files) +
                  (files == 1 ? " file" : " files"));
  return 0;
}

}  // namespace

namespace paddle::cli {

int sign_command(int argc, char** argv) {
  return run_tool([&] { return run_sign(argc, argv); });
}

}  // namespace paddle::cli
