// paddle-convert IN OUT: weights between safetensors, NPZ, GGUF and model folders, and out of other
// formats.

#include <nlohmann/json.hpp>

#include "base/interrupt.h"
#include "base/text.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "convert/convert.h"
#include "convert/encrypt.h"
#include "convert/format.h"
#include "formats/gguf/quantize.h"

namespace {

using namespace paddle;

/// Options that change what is written do not go with --encrypt.
int write_encrypted(const cli::App& app, const convert::Options& options, bool json) {
  for (const char* option : {"--from", "--to", "--map", "--dtype", "--only", "--exclude",
                             "--shard-size", "--resume", "--dry-run", "--allow-loss"})
    if (app.count(option) > 0)
      fail(ErrorCode::kUsage, option,
           " cannot be combined with --encrypt, which copies files unchanged");
  const convert::EncryptedCopy copy =
      convert::encrypt_model(options.in, options.out, options.overwrite);
  if (json)
    cli::print(nlohmann::ordered_json(
                   {{"output", options.out}, {"files", copy.files}, {"bytes", copy.bytes}})
                   .dump() +
               "\n");
  else
    cli::print_line(str(options.out, ": ", copy.files, copy.files == 1 ? " file, " : " files, ",
                        human_bytes(copy.bytes), ", encrypted"));
  return 0;
}

int run_convert(int argc, char** argv) {
  cli::App app{
      "Converts weights between safetensors, NPZ, GGUF and model folders, and out of ONNX, "
      "PyTorch, PaddlePaddle and HDF5 files; and programs of PaddlePaddle to ONNX files."};
  convert::Options options;
  bool json = false, encrypt = false;
  app.add_option(
         "IN", options.in,
         "a .safetensors, .npz, .gguf, .onnx, .pt, .pth, .pdparams, .pdiparams or .h5 file, an "
         "index of shards, a folder with a model, or a program of PaddlePaddle (.pdmodel, .json)")
      ->required();
  app.add_option(
         "OUT", options.out,
         "a .safetensors, .npz or .gguf file, an index of shards, or a model's folder, which takes "
         "weights that fit it; an .onnx file for a program")
      ->required();
  app.add_option("--from", options.from, "format of IN: " + join(convert::format_names(), ", "));
  app.add_option("--to", options.to, "format of OUT: safetensors, sharded, npz, folder, gguf");
  app.add_option("--map", options.rules, "YAML file of rules: new names, drop, transpose");
  app.add_option("--dtype", options.dtypes,
                 "TYPE for all tensors of its kind, or PATTERN=TYPE; later ones have priority; for "
                 "GGUF also " +
                     join(formats::gguf::block_type_names(), ", "))
      ->allow_extra_args(false);
  app.add_option("--only", options.only, "only tensors whose name in IN matches this pattern")
      ->allow_extra_args(false);
  app.add_option("--exclude", options.exclude,
                 "exclude tensors whose name in IN matches this pattern")
      ->allow_extra_args(false);
  app.add_option("--shard-size", options.shard_size, "several files of at most this size: 2GB");
  app.add_flag("--encrypt", encrypt,
               "copy the model IN, a file or a folder, as it is and encrypted with --model-key");
  app.add_flag("--resume", options.resume,
               "continue an interrupted call with --shard-size: finished shards are kept");
  app.add_flag("--dry-run", options.dry_run, "list what would be written, write nothing");
  app.add_flag("--overwrite", options.overwrite, "replace existing files");
  app.add_flag("--allow-loss", options.allow_loss,
               "write types that the format lacks in the next wider one");
  app.add_flag("--json", json, "print a JSON object on the last line: output, tensors and bytes");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (encrypt) return write_encrypted(app, options, json);
  const auto should_stop = [] {
    static const bool watches = (watch_for_interrupts(), true);
    return watches && pending_interrupt() != 0;
  };
  convert::Summary summary;
  try {
    summary =
        convert::run(options, {.line = [](const std::string& line) { cli::print_line(line); },
                               .warning = [](const std::string& line) { cli::print_warning(line); },
                               .should_stop = should_stop});
  } catch (const convert::Interrupted& stopped) {
    cli::print_error(stopped.can_resume() ? "interrupted; the same command with --resume continues"
                                          : "interrupted; nothing is written");
    return 128 + pending_interrupt();
  }
  if (json)
    cli::print(
        nlohmann::ordered_json({{"output", summary.output},
                                {summary.is_program ? "constants" : "tensors", summary.tensors},
                                {"bytes", summary.bytes},
                                {"written", !options.dry_run}})
            .dump() +
        "\n");
  return 0;
}

}  // namespace

namespace paddle::cli {

int convert_command(int argc, char** argv) {
  return run_tool([&] { return run_convert(argc, argv); });
}

}  // namespace paddle::cli
