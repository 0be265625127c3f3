// SPDX-License-Identifier: Apache-2.0
//
// The program fake-api-server: flags, exit codes, files, signals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "support/temp_folder.h"
#include "testing/api_client.h"
#include "testing/program.h"

namespace devmgr::testing {
namespace {

using ::testing::HasSubstr;

class FakeApiServerProgramTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const auto file = folder_.path() / name;
    std::ofstream(file) << text;
    return file.string();
  }
  TempFolder folder_;
};

std::uint16_t PortOf(const std::string& url) {
  return static_cast<std::uint16_t>(
      std::atoi(url.c_str() + url.rfind(':') + 1));
}

TEST_F(FakeApiServerProgramTest, ServesWhatItsFilesSayUntilItIsTerminated) {
  const std::string objects =
      Write("node.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n");
  const std::string more =
      Write("pod.json",
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}})");
  const std::string faults =
      Write("faults.yaml", "faults: [{action: fail, verb: list, code: 503}]\n");
  const std::string token = Write("token", "secret\n");
  Program program(FAKE_API_SERVER, {"--objects", objects, "--objects", more,
                                    "--faults", faults, "--token-file", token});
  const auto serving = program.NextEvent("serving");
  ASSERT_TRUE(serving.has_value()) << program.errors();
  ApiClient client(PortOf(serving->at("url")));
  const std::string bearer = "Authorization: Bearer secret\r\n";
  EXPECT_EQ(client.Do("GET", "/api/v1/nodes/n1").code, 401);
  EXPECT_EQ(client.Do("GET", "/api/v1/nodes/n1", "", bearer).code, 200);
  EXPECT_EQ(client.Do("GET", "/api/v1/pods", "", bearer).code, 503);
  EXPECT_EQ(client.Do("GET", "/api/v1/pods", "", bearer).body["items"].size(),
            1u);
  program.Signal(SIGTERM);
  EXPECT_EQ(program.ExitCode(), 0);
  EXPECT_EQ(program.errors(), "");
}

TEST_F(FakeApiServerProgramTest, MistakesAreReportedWithTheirFile) {
  const std::vector<std::vector<std::string>> cases = {
      {"--objects", "/nonexistent"},
      {"--objects", Write("bad.yaml", "kind: Nothing\n")},
      {"--faults", Write("faults.yaml", "faults: [{action: dance}]\n")},
      {"--certificate", "/nonexistent"}};
  for (const std::vector<std::string>& flags : cases) {
    Program program(FAKE_API_SERVER, flags);
    EXPECT_EQ(program.ExitCode(), 2) << flags[1];
    EXPECT_THAT(program.errors(), HasSubstr("fake-api-server: "));
  }
}

}  // namespace
}  // namespace devmgr::testing
