// SPDX-License-Identifier: Apache-2.0
//
// fake-api-server: an API server in memory, that can be made to misbehave. All
// it does lives in devmgr/testing_api_server.h.
#include <absl/status/status.h>
#include <devmgr/testing_api_server.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "shared/fake_program.h"

namespace {

constexpr const char* kName = "fake-api-server";

struct Flags {
  devmgr::testing::ScriptedApiServerOptions options;
  std::string certificate;
  std::string key;
  std::string client_authority;
  std::vector<std::string> objects;
  std::string faults;
  std::string token_file;
};

void AddTlsFlags(CLI::App& app, Flags* flags) {
  app.add_option("--certificate", flags->certificate,
                 "Serve https with this certificate (PEM)")
      ->type_name("FILE");
  app.add_option("--key", flags->key, "Its key (PEM)")->type_name("FILE");
  app.add_option("--client-authority", flags->client_authority,
                 "Verify certificates of clients against this authority; no "
                 "client needs one")
      ->type_name("FILE");
}

/// Reads the command line. False: there is nothing to run, and `*code` is what
/// the program ends with.
bool ParseFlags(int argc, char** argv, Flags* flags, int* code) {
  CLI::App app(
      "An API server in memory: pods, nodes, events, leases, and the types of\n"
      "resource.k8s.io. It knows no permissions, no schemas and no "
      "controllers.\n"
      "It prints its URL as one JSON line. SIGTERM ends it.");
  auto& options = flags->options;
  app.add_option("--address", options.address, "IP address to listen at")
      ->type_name("IP")
      ->capture_default_str();
  app.add_option("--port", options.port,
                 "Port to listen at; 0: one that is free")
      ->type_name("PORT")
      ->capture_default_str();
  AddTlsFlags(app, flags);
  app.add_option("--token-file", flags->token_file,
                 "Refuse requests without the token that is in this file")
      ->type_name("FILE");
  app.add_option("--objects", flags->objects,
                 "Begin with the objects of this manifest, in YAML or JSON; "
                 "may be given several times")
      ->type_name("FILE");
  app.add_option("--faults", flags->faults,
                 "YAML file with a list `faults` of misbehaviour")
      ->type_name("FILE");
  if (!devmgr::ParseCommandLine(&app, argc, argv, code)) return false;
  options.certificate = flags->certificate;
  options.key = flags->key;
  options.client_authority = flags->client_authority;
  return true;
}

absl::Status ReadFile(const std::string& path, std::string* text) {
  std::ifstream file(path, std::ios::binary);
  text->assign(std::istreambuf_iterator<char>(file), {});
  if (file.is_open() && !file.bad()) return absl::OkStatus();
  return absl::InvalidArgumentError("cannot read '" + path + "'");
}

absl::Status ReadFiles(Flags* flags) {
  std::string text;
  for (const std::string& file : flags->objects) {
    if (absl::Status read = ReadFile(file, &text); !read.ok()) return read;
    flags->options.objects += "---\n" + text + "\n";
  }
  if (!flags->token_file.empty()) {
    absl::Status read = ReadFile(flags->token_file, &flags->options.token);
    if (!read.ok()) return read;
    std::string& token = flags->options.token;
    token.erase(token.find_last_not_of("\r\n ") + 1);
  }
  if (flags->faults.empty()) return absl::OkStatus();
  if (absl::Status read = ReadFile(flags->faults, &text); !read.ok()) {
    return read;
  }
  auto faults = devmgr::testing::ReadApiFaults(text);
  if (!faults.ok()) return faults.status();
  flags->options.faults = *std::move(faults);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  int code = 0;
  if (!ParseFlags(argc, argv, &flags, &code)) return code;
  if (const absl::Status read = ReadFiles(&flags); !read.ok()) {
    return devmgr::Complain(kName, read, true);
  }
  devmgr::HoldBackSignals();
  const auto server =
      devmgr::testing::ScriptedApiServer::Start(std::move(flags.options));
  if (!server.ok()) {
    return devmgr::Complain(kName, server.status(),
                            absl::IsInvalidArgument(server.status()));
  }
  devmgr::PrintEvent(
      nlohmann::json({{"event", "serving"}, {"url", (*server)->url()}}).dump());
  devmgr::AwaitEnd();
  return 0;
}
