#include "ps_serve.h"

#include <cstdlib>

#include "base/error.h"
#include "comm/sockets.h"
#include "common.h"
#include "common_model_files.h"
#include "sections/sections.h"

namespace paddle::cli {

PsServe::PsServe(App& app)
    : serve_(app.add_subcommand(
          "serve", "be one server of the tables of a run, until its workers have ended")) {
  serve_->add_option("CONFIG", arguments_,
                     "the config of the run, then the same key=value overrides as its workers");
  serve_->add_option("--index", index_, "number of this server, from 0")
      ->check(in_range(0, comm::kMaxRanks - 1));
  serve_->add_option("--of", servers_, "number of servers")->check(in_range(1, comm::kMaxRanks));
  listen_ = serve_->add_option("--listen", options_.listen,
                               "host:port for workers, which PADDLE_SERVER_ADDRESSES lists "
                               "(default: a free port of 127.0.0.1)");
  serve_->add_option("-o,--output", output_,
                     "run folder, the same as that of the workers (default: runs/<config name>)");
  serve_->add_flag("--stay", options_.stays, "wait for another run when the workers have ended");
  serve_->add_flag("--insecure-network", insecure_network_,
                   "listen where other machines reach it, although rows are not encrypted");
}

bool PsServe::parsed() const { return serve_->parsed(); }

int PsServe::run() {
  register_sections();
  if (insecure_network_) ::setenv("PADDLE_INSECURE_NETWORK", "1", 1);
  auto overrides = take_overrides(arguments_);
  if (arguments_.size() != 1)
    fail(ErrorCode::kUsage, "serve takes one config, found ", arguments_.size());
  overrides = with_model_files(arguments_[0], std::move(overrides));
  train::RunConfig config = train::read_config(arguments_[0], overrides);
  ps::ServersPlace place;
  if (const auto stated = ps::servers_from_environment();
      stated && stated->is_server() && listen_->empty())
    place = *stated;
  else
    place = {.index = index_, .servers = servers_, .source = "--of"};
  if (const char* const token = std::getenv("PADDLE_RENDEZVOUS_TOKEN")) place.token = token;
  if (place.index >= place.servers)
    fail(ErrorCode::kUsage, "--index ", place.index, ": the run has ", place.servers,
         " servers, which count from 0");
  const std::string output = output_.empty() ? "runs/" + config.name : output_;
  return serve_tables(std::move(config), output, place, options_);
}

}  // namespace paddle::cli
