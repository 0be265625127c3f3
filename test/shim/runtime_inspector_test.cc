// SPDX-License-Identifier: Apache-2.0
//
// A runtime of the test's own, over a real socket: what is read of its answers,
// and which of them cannot be used.
#include <devmgr/cri_shim.h>
#include <devmgr/runtime_inspection.h>
#include <gmock/gmock.h>

#include "cri/runtime_fields.h"
#include "cri/wire.h"
#include "rpc/rpc_fixture.h"
#include "support/names_once.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using State = RuntimeContainer::State;

std::string Field(std::uint32_t number, const std::string& value) {
  std::string bytes;
  cri::AppendBytesField(&bytes, number, value);
  return bytes;
}
std::string Field(std::uint32_t number, std::uint64_t value) {
  std::string bytes;
  cri::AppendVarintField(&bytes, number, value);
  return bytes;
}
std::string Entry(std::uint32_t number, const std::string& key,
                  const std::string& value) {
  return Field(number, Field(1, key) + Field(2, value));
}

/// An item of ListPodSandbox.
std::string Sandbox(const std::string& id, const std::string& pod,
                    const std::string& uid) {
  return Field(1, Field(1, id) +
                      Field(2, Field(1, pod) + Field(2, uid) + Field(3, "ns")));
}

/// An item of ListContainers.
std::string Container(const std::string& id, const std::string& sandbox,
                      const std::string& name, std::uint64_t state,
                      const std::string& stamp = "") {
  std::string item = Field(1, id) + Field(2, sandbox) +
                     Field(3, Field(1, name) + Field(2, 2)) + Field(6, state);
  if (!stamp.empty()) item += Entry(9, "devmgr/allocation", stamp);
  return Field(1, item);
}

class RuntimeInspectorTest : public rpc::RpcTest {
 protected:
  void SetUp() override {
    RpcTest::SetUp();
    Answer(cri::method::kVersion, Field(1, "0.1.0") + Field(2, "containerd") +
                                      Field(3, "1.6.20") + Field(4, "v1"));
    Answer(cri::method::kListPodSandbox, "");
    Answer(cri::method::kListContainers, "");
  }
  void TearDown() override {
    inspector_.reset();
    server_.reset();
  }

  void Answer(std::string_view method, absl::StatusOr<std::string> answer) {
    methods_[std::string(method)] = [this, method, answer = std::move(answer)](
                                        const std::string& request,
                                        const rpc::Respond& respond) {
      if (method == cri::method::kContainerStatus) requests_.Put(request);
      respond(answer);
    };
  }
  /// The member `info` of a verbose ContainerStatus; and its annotations.
  void AnswerStatus(const std::string& info, const std::string& more = "") {
    Answer(cri::method::kContainerStatus,
           Field(1, Field(1, "id") + more) + Entry(2, "info", info));
  }

  RuntimeInspector& Open() {
    server_ = Serve(methods_);
    auto inspector = RuntimeInspector::Connect(Path(), kPatience);
    EXPECT_THAT(inspector, IsOk());
    inspector_ = *std::move(inspector);
    return *inspector_;
  }

  std::map<std::string, rpc::UnaryHandler> methods_;
  Mailbox<std::string> requests_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<RuntimeInspector> inspector_;
};

TEST_F(RuntimeInspectorTest, ListsContainersWithTheirPods) {
  Answer(cri::method::kListPodSandbox, Sandbox("s", "p", "uid"));
  Answer(cri::method::kListContainers,
         Container("b", "s", "c", 1, "stamp") + Container("a", "t", "d", 2));
  const auto containers = Open().Containers();
  ASSERT_THAT(containers, IsOk());
  EXPECT_THAT(
      *containers,
      ElementsAre(
          RuntimeContainer{"a", "d", 2, State::kExited, {}, {}, ""},
          RuntimeContainer{
              "b", "c", 2, State::kRunning, {"uid"}, {"ns", "p"}, "stamp"}));
}

TEST_F(RuntimeInspectorTest, ReadsTheConfigurationAsContainerdTellsIt) {
  AnswerStatus(R"({"pid": 7, "runtimeSpec": {"process": {"env": ["A=1"]}},
                   "config": {"CDI_devices": [{"name": "v.com/c=1"}, 7]}})",
               Entry(13, "cdi.k8s.io/x", "v.com/c=2,v.com/c=1") +
                   Entry(13, "mine", "1"));
  const auto config = Open().ConfigOf("id");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->oci, R"({"process":{"env":["A=1"]}})");
  EXPECT_THAT(config->cdi_devices, ElementsAre("v.com/c=1", "v.com/c=2"));
  EXPECT_EQ(config->annotations.at("mine"), "1");
  EXPECT_EQ(requests_.Take(), Field(1, "id") + Field(2, 1));
}

// The format is the runtime's own: what cannot be read is told as that.
TEST_F(RuntimeInspectorTest, SaysWhatItCannotRead) {
  const std::string deep = R"({"runtimeSpec": )" + std::string(200'000, '[') +
                           std::string(200'000, ']') + "}";
  const std::string more =
      std::string(R"({"runtimeSpec": {}})") + '\0' + "and more";
  const std::pair<std::string, const char*> table[] = {
      {deep, "nested deeper than 256 levels"},
      {"no JSON", "is no JSON"},
      {more, "is no JSON"},
      {"[]", "'runtimeSpec'"},
      {R"({"runtimeSpec": "text"})", "'runtimeSpec'"},
  };
  for (const auto& [info, why] : table) {
    AnswerStatus(info);
    EXPECT_THAT(Open().ConfigOf("id"),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("containerd 1.6.20"),
                               HasSubstr("container id"), HasSubstr(why))));
    TearDown();
  }
  Answer(cri::method::kContainerStatus, Field(1, Field(1, "id")));
  EXPECT_THAT(Open().ConfigOf("id"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("has no 'info'")));
}

TEST_F(RuntimeInspectorTest, ErrorsOfTheRuntimeKeepTheirCode) {
  Answer(cri::method::kContainerStatus, absl::NotFoundError("gone"));
  Answer(cri::method::kListContainers, "\x0a\x05");
  RuntimeInspector& inspector = Open();
  EXPECT_THAT(inspector.ConfigOf("id"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("gone"), HasSubstr(Path().string()))));
  EXPECT_THAT(inspector.Containers(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ListContainersResponse")));
}

TEST_F(RuntimeInspectorTest, NobodyThereIsUnavailable) {
  EXPECT_THAT(
      RuntimeInspector::Connect(Path(), kPatience),
      StatusIs(absl::StatusCode::kUnavailable, NamesOnce(Path().string())));
  methods_.clear();
  server_ = Serve(methods_);
  EXPECT_THAT(RuntimeInspector::Connect(Path(), kPatience),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("Version")));
}

TEST(FindRuntimeContainerTest, TakesAnIdOrTheOnlyOneThatBeginsSo) {
  std::vector<RuntimeContainer> containers(4);
  containers[0].id = "ab";
  containers[1].id = "abc";
  containers[2].id = "abd";
  containers[3].id = "xyz";
  EXPECT_EQ(FindRuntimeContainer(containers, "x")->id, "xyz");
  EXPECT_EQ(FindRuntimeContainer(containers, "ab")->id, "ab");
  EXPECT_THAT(FindRuntimeContainer(containers, "a"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("3 containers"), HasSubstr("abc"))));
  EXPECT_THAT(FindRuntimeContainer(containers, "q"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'q'")));
  EXPECT_THAT(FindRuntimeContainer(containers, ""),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace devmgr
