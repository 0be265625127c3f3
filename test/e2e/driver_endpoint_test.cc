// SPDX-License-Identifier: Apache-2.0
//
// devmgrd with an endpoint for drivers: what its configuration says, and what a
// driver finds. Drivers themselves: test/interop/standalone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "e2e/daemon.h"

namespace devmgr {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr char kDriver[] = "gpu.example.com";

class DriverEndpointTest : public ::testing::Test {
 protected:
  std::string Root() const { return node_.root().string(); }
  std::string ConfigFile() const { return Root() + "/config.yaml"; }
  std::filesystem::path Kubeconfig() const {
    return node_.root() / "kubeconfig" / kDriver;
  }
  void Configure(const std::string& yaml) const {
    std::ofstream(ConfigFile()) << yaml;
  }
  Exit Print() const {
    return RunTool("devmgrd", {"--root", Root(), "--config", ConfigFile(),
                               "--print-config"});
  }
  std::string Refused(const std::string& yaml) const {
    Configure(yaml);
    const Exit refused = Print();
    EXPECT_EQ(refused.code, 2) << yaml;
    return refused.err;
  }
  std::string TextOfKubeconfig() const {
    std::ifstream in(Kubeconfig());
    return {std::istreambuf_iterator<char>(in), {}};
  }

  NodeFolder node_;
};

TEST_F(DriverEndpointTest, IsInTheConfiguration) {
  Configure("nodeName: n1\ndriverEndpoint:\n  drivers: [gpu.example.com]\n");
  const Exit printed = Print();
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_THAT(printed.out,
              HasSubstr("driverEndpoint:\n  drivers:\n    - "
                        "gpu.example.com\n  kubeconfigDir: " +
                        Root() + "/kubeconfig\n  listen: 127.0.0.1:0\n"));
  // What is printed is read again.
  Configure(printed.out);
  EXPECT_EQ(Print().out, printed.out);
}

TEST_F(DriverEndpointTest, NamesWhatIsWrongInTheConfiguration) {
  EXPECT_THAT(Refused("driverEndpoint: 7\n"),
              HasSubstr("config.yaml:1: driverEndpoint: must be a map with "
                        "drivers, or false"));
  EXPECT_THAT(Refused("driverEndpoint:\n  port: 7\n"),
              HasSubstr("config.yaml:2: driverEndpoint: unknown key 'port'; "
                        "known are drivers, kubeconfigDir, listen"));
  EXPECT_THAT(Refused("driverEndpoint:\n  drivers: gpu.example.com\n"),
              HasSubstr("driverEndpoint.drivers: must be a list of names"));
  EXPECT_THAT(Refused("driverEndpoint: {documents: []}\n"),
              HasSubstr("driverEndpoint.documents: is not supported yet"));
  EXPECT_THAT(Refused("driverEndpoint: {classic: true}\n"),
              HasSubstr("driverEndpoint.classic: is not supported yet"));
  // With --root it is the name of the host.
  Configure("driverEndpoint: {drivers: [a]}\n");
  EXPECT_THAT(
      RunTool("devmgrd", {"--config", ConfigFile(), "--print-config"}).err,
      HasSubstr("driverEndpoint: nodeName must be set"));
  EXPECT_THAT(
      Refused("nodeName: n1\ndriverEndpoint: {drivers: [a], listen: here}\n"),
      HasSubstr("driverEndpoint.listen: "));
}

TEST_F(DriverEndpointTest, CanBeSwitchedOff) {
  Configure("nodeName: n1\ndriverEndpoint: false\n");
  const Exit printed = Print();
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_THAT(printed.out, HasSubstr("driverEndpoint: false\n"));
  Configure(printed.out);
  EXPECT_EQ(Print().out, printed.out);
  Daemon daemon(node_.root(), {"--config", ConfigFile()});
  ASSERT_NE(daemon.Inspect(), nullptr) << daemon.log();
  const Exit refused = node_.Ctl({"endpoint", "kubeconfig", kDriver});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("serves no endpoint for drivers"));
}

TEST_F(DriverEndpointTest, API070IsRefusedBesideAnotherThatAllocates) {
  const std::string endpoint = "nodeName: n1\ndriverEndpoint: {drivers: [a]}\n";
  EXPECT_THAT(Refused(endpoint + "apiServer: {kubeconfig: /k}\n"),
              HasSubstr("driverEndpoint: there is an API server"));
  EXPECT_THAT(Refused("nodeName: n1\nauthority: node\n"
                      "apiServer: {kubeconfig: /k}\n"),
              HasSubstr("authority: node does not go with apiServer"));
  EXPECT_THAT(Refused(endpoint + "authority: scheduler\n"),
              HasSubstr("driverEndpoint: authority is 'scheduler'"));
}

TEST_F(DriverEndpointTest, ADriverFindsItAtTheSamePlaceAfterAKill) {
  Configure("nodeName: n1\ndriverEndpoint:\n  drivers: [gpu.example.com]\n");
  std::string before;
  for (int start = 0; start < 2; ++start) {
    Daemon daemon(node_.root(), {"--config", ConfigFile()});
    ASSERT_NE(daemon.Inspect(), nullptr) << daemon.log();
    // Waits until it serves.
    EXPECT_EQ(node_.Ctl({"endpoint", "kubeconfig", kDriver}).code, 0);
    struct stat info {};
    ASSERT_EQ(stat(Kubeconfig().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    const std::string text = TextOfKubeconfig();
    EXPECT_THAT(text, ContainsRegex("server: .*https://127.0.0.1:[0-9]+"));
    EXPECT_THAT(daemon.log(), HasSubstr("drivers publish at https://127.0."));
    EXPECT_EQ(start == 0 ? text : before, text);
    before = text;
    daemon.Kill();
  }
}

TEST_F(DriverEndpointTest, SaysWhatKeepsItFromStarting) {
  Configure("nodeName: n1\ndriverEndpoint: {drivers: ['no driver']}\n");
  Daemon daemon(node_.root(), {"--config", ConfigFile()});
  EXPECT_EQ(daemon.Wait(), 1);
  EXPECT_THAT(daemon.log(), HasSubstr("driverEndpoint: "));
  EXPECT_THAT(daemon.log(), HasSubstr("no driver"));
}

}  // namespace
}  // namespace devmgr
