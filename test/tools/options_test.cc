// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OptionsTest : public CommandLineTest {};

// BO-160
TEST_F(OptionsTest, UnknownFormatListsTheAllowedOnes) {
  for (const char* kind :
       {"plugins", "resources", "claims", "pods", "devices", "classes"}) {
    const Result result = Run({"get", kind, "-o", "foo"});
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, AllOf(HasSubstr("'foo'"),
                                  HasSubstr("table, wide, json, yaml, name")));
    EXPECT_THAT(result.out, IsEmpty());
  }
  EXPECT_THAT(endpoints_, IsEmpty());
}

TEST_F(OptionsTest, UsageErrorsExitWithTwoAndSayWhatIsAllowed) {
  const std::pair<std::vector<std::string>, const char*> table[] = {
      {{}, "no verb given"},
      {{"-n", "x"}, "resolve"},
      {{"frobnicate"}, "verb 'frobnicate' is not known; use one of: status"},
      {{"get"},
       "KIND is missing; use one of: plugins, resources, claims, debts, pods"},
      {{"get", "-o", "json"}, "KIND is missing"},
      {{"describe"}, "KIND is missing; use one of: pod, claim, plugin"},
      {{"wait"}, "--for"},
      {{"get", "things"},
       "plugins, resources, claims, debts, pods, devices, classes"},
      {{"get", "pods", "--frobnicate"}, "--frobnicate"},
      {{"get", "pods", "a", "more"}, "more"},
      {{"get", "pod/a", "more"}, "'more' is one too many"},
      {{"get", "pod/"}, "name behind the kind is empty"},
      {{"get", "example.com/gpu"}, "kind 'example.com' is not known"},
      {{"wait", "claim/x", "--for=ready"}, "'claim' is not for this verb"},
      {{"get", "devices", "a", "b"}, "b"},
      {{"describe", "pod"}, "NAME"},
      {{"describe", "class", "x"}, "pod, claim, plugin, resource, device"},
      {{"describe", "pod", "a/b/c"}, "NAMESPACE/NAME"},
      {{"describe", "pod", "/b"}, "NAMESPACE/NAME"},
      {{"resolve"}, "POD"},
      {{"explain", "pod"}, "NAME of the pod is missing"},
      {{"explain", "claim", "x"}, "pod"},
      {{"explain", "pod", ""}, "empty"},
      {{"get", "pods", "--show-env"}, "--show-env"},
      {{"resolve", ""}, "empty"},
      {{"resolve", "a/b", "-n", "c"}, "another namespace"},
      {{"wait", "pod", "x"}, "--for"},
      {{"wait", "claim", "x", "--for=ready"}, "pod"},
      {{"wait", "pod", "x", "--for=done"},
       "ready, waiting, rejected, released"},
      {{"wait", "pod", "x", "--for=ready", "--timeout", "20"}, "20s"},
      {{"status", "--timeout", "-1s"}, "--timeout"},
      {{"history", "--since", "yesterday"}, "sequence number, a time such as"},
      {{"history", "a/b/c"}, "NAMESPACE/NAME"},
      {{"history", "pod/"}, "kind is empty"},
      {{"history", "claim/a/b", "-n", "c"}, "another namespace"},
      {{"events", "--since", "7"}, "give a time such as"},
      {{"state", "--at", "12:00"}, "--at '12:00'"},
      {{"diff"}, "--from"},
      {{"diff", "--from", "1", "--to", "x"}, "--to 'x'"},
      {{"status", "--color", "pink"}, "auto, always, never"},
      {{"status", "--endpoint", "/a", "--state-dir", "/b"}, "--endpoint"},
  };
  for (const auto& [arguments, text] : table) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 2) << text;
    EXPECT_THAT(result.err, HasSubstr(text));
    EXPECT_THAT(result.out, IsEmpty()) << text;
  }
  EXPECT_THAT(endpoints_, IsEmpty());
}

TEST_F(OptionsTest, UsageErrorsSayWhatWasExpectedWithAnExample) {
  const std::pair<std::vector<std::string>, const char*> table[] = {
      {{"frobnicate"}, "devmgrctl VERB"},
      {{"get"}, "devmgrctl get KIND [NAME] or get KIND/NAME"},
      {{"get", "pods", "--frobnicate"}, "devmgrctl get KIND [NAME]"},
      {{"describe", "pod"}, "devmgrctl describe KIND NAME"},
      {{"resolve"}, "devmgrctl resolve POD"},
      {{"explain"}, "devmgrctl explain pod NAME"},
      {{"wait", "pod", "x"}, "--for=ready|waiting|rejected|released"},
      {{"prepare"}, "devmgrctl prepare pod NAME"},
      {{"release"}, "release claim NAME --force --reason TEXT"},
      {{"hand-over"}, "--to plugin|class|automatic"},
      {{"status", "x"}, "devmgrctl status"},
      {{"version", "x"}, "devmgrctl version"},
      {{"events", "--since", "7"}, "devmgrctl events"},
      {{"history", "--since", "x"}, "[--since SEQ|TIME]"},
      {{"state", "--at", "x"}, "[--at SEQ|TIME]"},
      {{"diff"}, "--from SEQ|TIME"},
      {{"fsck", "--yes"}, "fsck [--repair [--yes]]"},
      {{"inject"}, "inject --pod POD"},
      {{"cdi"}, "cdi dirs|list|show|validate|watch|min-version"},
      {{"cdi", "dirs", "x"}, "cdi dirs\n"},
      {{"cdi", "list", "x"}, "cdi list\n"},
      {{"cdi", "show"}, "cdi show VENDOR/CLASS=DEVICE"},
      {{"cdi", "validate", "--x"}, "cdi validate [PATH...]"},
      {{"cdi", "watch", "x"}, "cdi watch [--timeout DURATION]"},
      {{"cdi", "min-version"}, "cdi min-version FILE"},
  };
  for (const auto& [arguments, form] : table) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 2) << form;
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("\nExpected: devmgrctl "), HasSubstr(form),
                      HasSubstr("\nExample:  devmgrctl ")));
  }
}

TEST_F(OptionsTest, KindAndNameMayBeOneArgument) {
  node_.pods = {MakePod("default", "p", PodState::kReady),
                MakePod("other", "p", PodState::kReady)};
  node_.answer = PodDevices{};
  const auto uid = [&](const std::vector<std::string>& arguments) {
    return RunJson(arguments)["metadata"]["namespace"];
  };
  EXPECT_EQ(uid({"describe", "pod/p"}), "default");
  EXPECT_EQ(uid({"describe", "pods/other/p"}), "other");
  EXPECT_EQ(uid({"get", "pod/p", "-n", "other"}), "other");
  EXPECT_EQ(Run({"wait", "pod/p", "--for=ready"}).code, 0);
  EXPECT_EQ(Run({"explain", "pod/p"}).code, 0);
  EXPECT_EQ(Run({"resolve", "pod/p"}).code, 0);
}

TEST_F(OptionsTest, HelpAndVersionAreResults) {
  const Result help = Run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("resolve"));
  EXPECT_THAT(help.err, IsEmpty());
  EXPECT_THAT(Run({"resolve", "--help"}).out, HasSubstr("--container"));
  const Result version = Run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, HasSubstr("devmgrctl "));
}

TEST_F(OptionsTest, GlobalFlagsCountBeforeAndBehindTheVerb) {
  node_.pods = {MakePod("default", "a", PodState::kReady),
                MakePod("other", "b", PodState::kReady)};
  const std::string expected =
      Run({"--endpoint", "/x", "-n", "other", "-o", "name", "get", "pods"}).out;
  EXPECT_EQ(expected, "pod/b\n");
  EXPECT_EQ(
      Run({"get", "pods", "--endpoint", "/x", "-n", "other", "-o", "name"}).out,
      expected);
  EXPECT_EQ(
      Run({"-n", "other", "get", "-o", "name", "pods", "--endpoint=/x"}).out,
      expected);
  EXPECT_THAT(endpoints_, ElementsAre("/x", "/x", "/x"));
}

TEST_F(OptionsTest, PodsMayBeNamedLikeVerbs) {
  node_.pods = {MakePod("default", "status", PodState::kReady)};
  EXPECT_EQ(Run({"describe", "pod", "status"}).code, 0);
}

TEST_F(OptionsTest, EndpointIsFlagThenEnvironmentThenDefault) {
  Run({"status"});
  variables_["DEVMGR_ENDPOINT"] = "";
  Run({"status"});
  variables_["DEVMGR_ENDPOINT"] = "/from/env.sock";
  Run({"status"});
  Run({"status", "--endpoint", "/from/flag.sock"});
  Run({"status", "--endpoint", "unix:///with/scheme.sock"});
  EXPECT_THAT(
      endpoints_,
      ElementsAre("/run/devmgr/devmgr.sock", "/run/devmgr/devmgr.sock",
                  "/from/env.sock", "/from/flag.sock", "/with/scheme.sock"));
}

TEST_F(OptionsTest, TimeoutOfACallIsTwoSecondsUnlessGiven) {
  Run({"status"});
  Run({"status", "--timeout", "500ms"});
  Run({"--timeout", "1m", "status"});
  Run({"status", "--timeout", "0"});
  EXPECT_THAT(timeouts_,
              ElementsAre(milliseconds(2'000), milliseconds(500),
                          milliseconds(60'000), std::chrono::hours(24)));
}

TEST_F(OptionsTest, BareNamesAreInDefaultOrTheNamespaceGiven) {
  node_.pods = {MakePod("default", "p", PodState::kReady),
                MakePod("other", "p", PodState::kReady)};
  const auto namespace_of = [&](const std::vector<std::string>& arguments) {
    return RunJson(arguments)["metadata"]["namespace"];
  };
  EXPECT_EQ(namespace_of({"describe", "pod", "p"}), "default");
  EXPECT_EQ(namespace_of({"describe", "pod", "p", "-n", "other"}), "other");
  EXPECT_EQ(namespace_of({"describe", "pod", "other/p"}), "other");
}

TEST_F(OptionsTest, ErrorsBecomeExitCodes) {
  const std::pair<absl::Status, int> table[] = {
      {absl::UnavailableError("x"), 4},
      {absl::DeadlineExceededError("x"), 4},
      {absl::PermissionDeniedError("x"), 5},
      {absl::NotFoundError("x"), 3},
      {absl::DataLossError("x"), 1},
  };
  for (const auto& [error, code] : table) {
    node_.health = error;
    EXPECT_EQ(Run({"get", "pods"}).code, code) << error.ToString();
  }
  node_.health = absl::OkStatus();
  connect_error_ = absl::UnavailableError("'/run/x' is not there");
  const Result down = Run({"get", "pods"});
  EXPECT_EQ(down.code, 4);
  EXPECT_THAT(down.err, AllOf(HasSubstr("'/run/x'"), HasSubstr("--endpoint"),
                              HasSubstr("--state-dir")));
  connect_error_ = absl::PermissionDeniedError("x");
  EXPECT_EQ(Run({"get", "pods"}).code, 5);
}

// BO-163
TEST_F(OptionsTest, StateDirectoryStandsInForADaemonThatIsDown) {
  connect_error_ = absl::UnavailableError("nobody there");
  ClaimInfo claim;
  claim.name = {"default", "gpu-claim"};
  node_.claims = {claim};
  EXPECT_EQ(Run({"get", "claims"}).code, 4);

  const Result result = Run({"get", "claims", "--state-dir", "/var/state"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("gpu-claim"));
  EXPECT_THAT(result.err, HasSubstr("'/var/state'"));
  EXPECT_THAT(state_dirs_, ElementsAre("/var/state"));
}

TEST_F(OptionsTest, StateDirectoryThatCannotBeReadIsAFailure) {
  state_dir_error_ = absl::FailedPreconditionError("held by devmgrd (pid 7)");
  Result result = Run({"get", "pods", "--state-dir", "/s"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("pid 7"));
  state_dir_error_ = absl::NotFoundError("no ledger");
  EXPECT_EQ(Run({"get", "pods", "--state-dir", "/s"}).code, 1);
  state_dir_error_ = absl::PermissionDeniedError("no");
  EXPECT_EQ(Run({"get", "pods", "--state-dir", "/s"}).code, 5);
}

TEST_F(OptionsTest, VerbsThatNeedADaemonSaySo) {
  const std::vector<std::string> table[] = {{"wait", "pod", "x", "--for=ready"},
                                            {"prepare", "pod", "x"},
                                            {"release", "pod", "x"},
                                            {"events"},
                                            {"describe", "plugin", "x"}};
  for (std::vector<std::string> arguments : table) {
    arguments.insert(arguments.end(), {"--state-dir", "/s"});
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 1) << arguments[0];
    EXPECT_THAT(result.err, HasSubstr("needs a running daemon"));
  }
  EXPECT_THAT(endpoints_, IsEmpty());
}

}  // namespace
}  // namespace devmgr::ctl
