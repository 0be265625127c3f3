// SPDX-License-Identifier: Apache-2.0
//
// Any command line for devmgrctl, run to its end over a made-up node. The
// input is lines (or texts that end with a NUL): the first one says how the
// node fares and what its drivers say, the others are the arguments.
#include <yaml-cpp/yaml.h>

#include <chrono>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "devmgrctl/options.h"
#include "devmgrctl/output.h"
#include "devmgrctl/run.h"
#include "fuzz/ctl_world.h"
#include "fuzz/fuzz.h"

namespace devmgr::fuzz {
namespace {

using ctl::Format;
using ctl::Json;
using ctl::Options;

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome RunIn(const std::string& weather,
              const std::vector<std::string>& arguments) {
  CtlWorld world(weather);
  Outcome outcome;
  outcome.code = ctl::Run(arguments, world.environment());
  outcome.out = world.out();
  outcome.err = world.err();
  return outcome;
}

/// Colours are ours; nothing else may reach a terminal.
void RequireHarmless(std::string_view text, bool color) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\x1B' && color) {
      i = text.find('m', i);
      Require(i <= text.size(), "a colour ends");
      continue;
    }
    Require((c >= 0x20 && c != 0x7F) || c == '\n',
            "output has no control characters");
  }
}

/// YAML says what JSON says.
void RequireSame(const YAML::Node& yaml, const Json& json) {
  if (json.is_object()) {
    Require(yaml.IsMap() && yaml.size() == json.size(), "a map stays one");
    for (const auto& [name, member] : json.items()) {
      RequireSame(yaml[name], member);
    }
  } else if (json.is_array()) {
    Require(yaml.IsSequence() && yaml.size() == json.size(),
            "a list stays one");
    for (std::size_t i = 0; i < json.size(); ++i) RequireSame(yaml[i], json[i]);
  } else {
    Require(yaml.IsScalar(), "a value stays one");
    Require(yaml.Scalar() ==
                (json.is_string() ? json.get<std::string>() : json.dump()),
            "a value stays the same");
  }
}

void CheckJson(const std::string& out, bool stream) {
  if (!stream) {
    Require(Json::accept(out), "a document is JSON");
    return;
  }
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    Require(Json::accept(line), "each line of a stream is JSON");
  }
}

void CheckYaml(const std::string& weather, std::vector<std::string> arguments,
               const std::string& out) {
  arguments.insert(arguments.begin(), {"-o", "json"});
  for (std::string& argument : arguments) {
    if (argument == "yaml") argument = "json";
  }
  const Json json = Json::parse(RunIn(weather, arguments).out, nullptr, false);
  // The format may have been spelled in another way; then it is no JSON.
  if (json.is_discarded()) return;
  RequireSame(YAML::Load(out), json);
}

void CheckDocument(const std::string& weather,
                   const std::vector<std::string>& arguments,
                   const Outcome& outcome, const Options& options) {
  if (options.format == Format::kJson) {
    CheckJson(outcome.out, options.follow);
  } else if (options.format == Format::kYaml && !options.follow) {
    CheckYaml(weather, arguments, outcome.out);
  }
}

void Check(const std::string& weather,
           const std::vector<std::string>& arguments) {
  const Outcome outcome = RunIn(weather, arguments);
  Require((outcome.code >= ctl::kExitDone &&
           outcome.code <= ctl::kExitPermission) ||
              outcome.code == ctl::kExitTrouble,
          "the exit code is one of the table");
  CtlWorld world(weather);
  const auto parsed = ctl::ParseCommandLine(arguments, world.environment());
  const Options* options = std::get_if<Options>(&parsed);
  if (options == nullptr) {
    // Help or usage, which quotes what was typed.
    Require(outcome.code == ctl::kExitDone || outcome.code == ctl::kExitUsage,
            "who is not understood is told so");
    Require(!outcome.out.empty() || !outcome.err.empty(), "and not silently");
    return;
  }
  Require(outcome.code != ctl::kExitUsage, "what is understood is tried");
  RequireHarmless(outcome.out, ctl::WantsColor(*options, world.environment()));
  RequireHarmless(outcome.err, false);
  if (outcome.code == ctl::kExitDone) {
    CheckDocument(weather, arguments, outcome, *options);
  } else {
    Require(!outcome.err.empty(), "a failure is told");
  }
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == '\n' || data[i] == '\0') {
      lines.emplace_back();
    } else {
      lines.back() += static_cast<char>(data[i]);
    }
  }
  const std::string weather = lines.front();
  lines.erase(lines.begin());
  // A last line may end like all others.
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  devmgr::fuzz::Check(weather, lines);
  return 0;
}
