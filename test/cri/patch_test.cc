// SPDX-License-Identifier: Apache-2.0
#include "cri/patch.h"

#include <container.pb.h>
#include <gmock/gmock.h>
#include <google/protobuf/reflection.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "cri/messages.h"
#include "cri/wire.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"

namespace devmgr::cri {
namespace {

namespace pb = test::cri;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Of few texts, so that keys meet; some with bytes that are no UTF-8 (BO-097).
std::string RandomText(Luck& luck) {
  static const std::vector<std::string> kTexts = {
      "", "A", "B", "/dev/x", "/data", "v/c=1", "\xFF\xFE", "v/c=2"};
  const int pick = luck.Below(9);
  if (pick < 8) return kTexts[static_cast<std::size_t>(pick)];
  return std::string(luck.Below(std::size_t{400}), 'x');
}

void AddUnknown(Luck& luck, google::protobuf::Message* message) {
  auto* unknown = message->GetReflection()->MutableUnknownFields(message);
  // BO-096.
  if (luck.Below(3) == 0) unknown->AddLengthDelimited(999, "kept");
  if (luck.Below(4) == 0) unknown->AddVarint(1000, luck());
  if (luck.Below(4) == 0) unknown->AddFixed32(1001, luck());
  if (luck.Below(4) == 0) unknown->AddFixed64(1002, luck());
  if (luck.Below(4) == 0) unknown->AddGroup(1003)->AddVarint(1, 7);
}

/// Fills a message with anything.
void Fill(Luck& luck, google::protobuf::Message* message) {
  const Descriptor& type = *message->GetDescriptor();
  const auto& reflection = *message->GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    const int count = field->is_repeated() ? luck.Below(4) : luck.Below(2);
    for (int n = 0; n < count; ++n) {
      const bool many = field->is_repeated();
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_MESSAGE:
          Fill(luck, many ? reflection.AddMessage(message, field)
                          : reflection.MutableMessage(message, field));
          break;
        case FieldDescriptor::CPPTYPE_STRING:
          many ? reflection.AddString(message, field, RandomText(luck))
               : reflection.SetString(message, field, RandomText(luck));
          break;
        case FieldDescriptor::CPPTYPE_BOOL:
          reflection.SetBool(message, field, true);
          break;
        case FieldDescriptor::CPPTYPE_INT32:
          reflection.SetInt32(message, field, luck.Below(3));
          break;
        case FieldDescriptor::CPPTYPE_UINT32:
          reflection.SetUInt32(message, field, luck());
          break;
        case FieldDescriptor::CPPTYPE_INT64:
          reflection.AddInt64(message, field, luck.Below(70'000));
          break;
        default:
          FAIL() << field->full_name();
      }
    }
  }
  AddUnknown(luck, message);
}

template <typename Entry, typename Make>
ListEdit<Entry> RandomEdit(Luck& luck, Make make) {
  ListEdit<Entry> edit;
  for (int i = luck.Below(3); i > 0; --i) edit.first.push_back(make());
  for (int i = luck.Below(3); i > 0; --i) edit.last.push_back(make());
  for (int i = luck.Below(3); i > 0; --i) {
    edit.drop.insert(RandomText(luck));
  }
  return edit;
}

ConfigEdits RandomEdits(Luck& luck) {
  const auto text = [&] { return RandomText(luck); };
  const auto value = [&] { return NamedValue{text(), text()}; };
  ConfigEdits edits;
  edits.env = RandomEdit<NamedValue>(luck, value);
  edits.annotations = RandomEdit<NamedValue>(luck, value);
  edits.cdi_devices = RandomEdit<std::string>(luck, text);
  edits.devices = RandomEdit<DeviceNode>(luck, [&] {
    return DeviceNode{text(), text(), text()};
  });
  edits.mounts = RandomEdit<CriMount>(luck, [&] {
    CriMount mount{text(), text(), luck.Below(2) == 0};
    mount.propagation = static_cast<CriMount::Propagation>(luck.Below(3));
    mount.options.assign(static_cast<std::size_t>(luck.Below(2)), text());
    return mount;
  });
  edits.supplemental_groups.assign(static_cast<std::size_t>(luck.Below(3)),
                                   luck());
  return edits;
}

// The same edits on what generated code has parsed.

pb::KeyValue ToProto(const NamedValue& value) {
  pb::KeyValue message;
  message.set_key(value.name);
  message.set_value(value.value);
  return message;
}

pb::CDIDevice ToProto(const std::string& name) {
  pb::CDIDevice message;
  message.set_name(name);
  return message;
}

pb::Device ToProto(const DeviceNode& device) {
  pb::Device message;
  message.set_container_path(device.container_path);
  message.set_host_path(device.host_path);
  message.set_permissions(device.permissions);
  return message;
}

pb::Mount ToProto(const CriMount& mount) {
  pb::Mount message;
  message.set_container_path(mount.container_path);
  message.set_host_path(mount.host_path);
  message.set_readonly(mount.read_only);
  message.set_propagation(static_cast<int>(mount.propagation));
  for (const std::string& option : mount.options) {
    message.add_mount_options(option);
  }
  return message;
}

template <typename Repeated, typename Entry, typename Key>
void Edit(Repeated* list, const ListEdit<Entry>& edit, Key key) {
  Repeated result;
  for (const Entry& entry : edit.first) *result.Add() = ToProto(entry);
  for (const auto& entry : *list) {
    if (!edit.drop.contains(key(entry))) *result.Add() = entry;
  }
  for (const Entry& entry : edit.last) *result.Add() = ToProto(entry);
  *list = result;
}

void Edit(pb::ContainerConfig* config, const ConfigEdits& edits) {
  const auto key = [](const auto& entry) { return entry.key(); };
  const auto path = [](const auto& entry) { return entry.container_path(); };
  Edit(config->mutable_envs(), edits.env, key);
  Edit(config->mutable_mounts(), edits.mounts, path);
  Edit(config->mutable_devices(), edits.devices, path);
  Edit(config->mutable_annotations(), edits.annotations, key);
  Edit(config->mutable_cdi_devices(), edits.cdi_devices,
       [](const auto& entry) { return entry.name(); });
  for (const std::uint32_t group : edits.supplemental_groups) {
    config->mutable_linux()
        ->mutable_security_context()
        ->add_supplemental_groups(group);
  }
}

template <typename T>
T Parse(const std::string& bytes) {
  T message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  return message;
}

constexpr int kRounds = 500;

TEST(PatchCreateContainer, IsTheSameAsToParseAndEdit) {
  LiveEach({11, kRounds}, [](Luck& luck) {
    pb::CreateContainerRequest request;
    Fill(luck, &request);
    const ConfigEdits edits = RandomEdits(luck);
    const auto patched =
        PatchCreateContainer(request.SerializeAsString(), edits);
    ASSERT_THAT(patched, IsOk());
    pb::CreateContainerRequest expected = request;
    if (!edits.empty()) Edit(expected.mutable_config(), edits);
    ASSERT_TRUE(MessageDifferencer::Equals(
        Parse<pb::CreateContainerRequest>(*patched), expected))
        << request.DebugString();
  });
}

TEST(PatchCreateContainer, EditsAConfigThatComesInParts) {
  LiveEach({12, kRounds}, [](Luck& luck) {
    std::string bytes;
    for (int part = 0; part < 3; ++part) {
      pb::CreateContainerRequest request;
      Fill(luck, &request);
      bytes += request.SerializeAsString();
    }
    const ConfigEdits edits = RandomEdits(luck);
    const auto patched = PatchCreateContainer(bytes, edits);
    ASSERT_THAT(patched, IsOk());
    auto expected = Parse<pb::CreateContainerRequest>(bytes);
    if (!edits.empty()) Edit(expected.mutable_config(), edits);
    ASSERT_TRUE(MessageDifferencer::Equals(
        Parse<pb::CreateContainerRequest>(*patched), expected));
  });
}

// Together they would be one, but no reader of protobuf puts them together.
TEST(PatchCreateContainer, PartsOfAConfigHaveToBeWhole) {
  const std::string start = "\x12\x02\x25\xFE";     // a fixed32, cut short
  const std::string rest = "\x12\x03\x75\x2D\x31";  // its other bytes
  pb::CreateContainerRequest request;
  ASSERT_FALSE(request.ParseFromString(start + rest));
  EXPECT_THAT(ReadCreateContainer(start + rest),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a ContainerConfig")));
}

// BO-100.
TEST(PatchRestorePod, EditsEachConfigByItself) {
  LiveEach({13, kRounds}, [](Luck& luck) {
    pb::RestorePodRequest request;
    Fill(luck, &request);
    std::vector<ConfigEdits> edits;
    for (int i = luck.Below(4); i > 0; --i) {
      edits.push_back(luck.Below(3) == 0 ? ConfigEdits() : RandomEdits(luck));
    }
    const auto patched = PatchRestorePod(request.SerializeAsString(), edits);
    ASSERT_THAT(patched, IsOk());
    pb::RestorePodRequest expected = request;
    for (std::size_t i = 0; i < edits.size(); ++i) {
      if (static_cast<int>(i) < expected.container_configs_size()) {
        Edit(expected.mutable_container_configs(static_cast<int>(i)), edits[i]);
      }
    }
    ASSERT_TRUE(MessageDifferencer::Equals(
        Parse<pb::RestorePodRequest>(*patched), expected));
  });
}

TEST(PatchRunPodSandbox, IsTheSameAsToParseAndEdit) {
  LiveEach({17, kRounds}, [](Luck& luck) {
    const auto value = [&] {
      return NamedValue{RandomText(luck), RandomText(luck)};
    };
    const auto edit = RandomEdit<NamedValue>(luck, value);
    const auto key = [](const auto& entry) { return entry.key(); };
    pb::RunPodSandboxRequest request;
    Fill(luck, &request);
    const auto patched = PatchRunPodSandbox(request.SerializeAsString(), edit);
    ASSERT_THAT(patched, IsOk());
    pb::RunPodSandboxRequest expected = request;
    if (!edit.empty()) {
      Edit(expected.mutable_config()->mutable_annotations(), edit, key);
    }
    ASSERT_TRUE(MessageDifferencer::Equals(
        Parse<pb::RunPodSandboxRequest>(*patched), expected))
        << request.DebugString();
    pb::RestorePodRequest restore;
    Fill(luck, &restore);
    const auto both = PatchRestorePod(restore.SerializeAsString(), {}, edit);
    ASSERT_THAT(both, IsOk());
    if (!edit.empty()) {
      Edit(restore.mutable_config()->mutable_annotations(), edit, key);
    }
    ASSERT_TRUE(MessageDifferencer::Equals(Parse<pb::RestorePodRequest>(*both),
                                           restore));
  });
}

// BO-096, BO-097, BO-098: to the byte, in parts, and with what is not known.
TEST(PatchRunPodSandbox, ChangesOnlyTheConfigsLengthAndWhatIsAdded) {
  std::string first;
  AppendBytesField(&first, 999, "?");
  AppendBytesField(&first, 7, std::string("\x0A\x01K\x12\x02\xFF\xFE", 7));
  const std::string ours = std::string("\x0A\x01N\x12\x05v/c=1", 10);
  std::string last;
  AppendBytesField(&last, 7, std::string("\x0A\x01N\x12\x01x", 6));
  std::string request = std::string("\x12\x04kata", 6);
  std::string expected = request;
  AppendBytesField(&request, 1, first);
  AppendBytesField(&expected, 1, first);
  AppendBytesField(&request, 1, last);
  last.clear();
  AppendBytesField(&last, 7, ours);
  AppendBytesField(&expected, 1, last);
  AppendBytesField(&request, 999, "!");
  AppendBytesField(&expected, 999, "!");
  ListEdit<NamedValue> edit;
  edit.drop = {"N"};
  edit.last = {{"N", "v/c=1"}};
  EXPECT_EQ(PatchRunPodSandbox(request, edit).value(), expected);
  EXPECT_EQ(PatchRunPodSandbox(request, {}).value(), request);
  edit.drop = {"NOT_THERE"};
  edit.last.clear();
  EXPECT_EQ(PatchRunPodSandbox(request, edit).value(), request);
  EXPECT_THAT(PatchRunPodSandbox("\x0A\x02\x3A\x07", edit),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a PodSandboxConfig")));
}

// BO-098.
TEST(PatchCreateContainer, LeavesBytesAloneWhenThereIsNothingToDo) {
  // Not in order, a varint with needless bytes, a field twice.
  const std::string request(
      "\x1A\x00\x12\x80\x00\x0A\x01"
      "a\x0A\x01"
      "b",
      11);
  EXPECT_EQ(PatchCreateContainer(request, {}).value(), request);
  EXPECT_EQ(PatchRestorePod(request, {}).value(), request);
  // Nor does a drop that meets nothing change them.
  ConfigEdits drop;
  drop.env.drop = {"NOT_THERE"};
  EXPECT_EQ(PatchCreateContainer(request, drop).value(), request);
}

// BO-096, BO-097: of what is around nothing changes, not its encoding either.
TEST(PatchCreateContainer, ChangesOnlyTheConfigsLengthAndWhatIsAdded) {
  std::string config;
  AppendBytesField(&config, 999, "?");
  AppendBytesField(&config, 6, std::string("\x0A\x01K\x12\x02\xFF\xFE", 7));
  config += std::string("\x70\x81\x80\x00", 4);  // `tty` in three bytes.
  std::string request = std::string("\xBA\x3E\x01?\x0A\x01s", 7);
  std::string expected = request;
  AppendBytesField(&request, 2, config);
  AppendBytesField(&config, 17, std::string("\x0A\x05v/c=1", 7));
  AppendBytesField(&expected, 2, config);
  AppendBytesField(&request, 999, "!");
  AppendBytesField(&expected, 999, "!");
  ConfigEdits edits;
  edits.cdi_devices.last = {"v/c=1"};
  EXPECT_EQ(PatchCreateContainer(request, edits).value(), expected);
}

TEST(PatchCreateContainer, RefusesWhatIsNoRequest) {
  ConfigEdits edits;
  edits.cdi_devices.last = {"v/c=1"};
  for (const std::string& bytes :
       {std::string("\x12\x05"), std::string("\x12\x02\x0A\x07"),
        std::string("\x0C"), std::string("\x0B"), std::string("\x00\x00", 2),
        std::string(11, '\xFF')}) {
    EXPECT_THAT(
        PatchCreateContainer(bytes, edits),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("are not a")));
  }
}

TEST(ReadCreateContainer, TellsWhoAndWhat) {
  pb::CreateContainerRequest request;
  request.set_pod_sandbox_id("s-1");
  auto& metadata = *request.mutable_sandbox_config()->mutable_metadata();
  metadata.set_name("train");
  metadata.set_uid("u-1");
  metadata.set_namespace_("ns");
  metadata.set_attempt(3);
  pb::ContainerConfig& config = *request.mutable_config();
  config.mutable_metadata()->set_name("main");
  config.mutable_metadata()->set_attempt(2);
  *config.add_envs() = ToProto(NamedValue{"K", "\xFF"});
  *config.add_mounts() = ToProto(CriMount{"/c", "/h", true});
  *config.add_devices() = ToProto(DeviceNode{"/dev/c", "/dev/h", "rw"});
  *config.add_annotations() = ToProto(NamedValue{"a", "1"});
  *config.add_annotations() = ToProto(NamedValue{"a", "2"});
  config.add_cdi_devices()->set_name("v/c=1");
  auto& context = *config.mutable_linux()->mutable_security_context();
  context.add_supplemental_groups(44);
  context.add_supplemental_groups(50'000);
  const auto read = ReadCreateContainer(request.SerializeAsString());
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->sandbox_id, "s-1");
  EXPECT_EQ(read->sandbox.identity,
            (SandboxIdentity{{"u-1"}, {"ns", "train"}, 3}));
  EXPECT_EQ(read->config.name, "main");
  EXPECT_EQ(read->config.attempt, 2U);
  EXPECT_THAT(read->config.env, ElementsAre(NamedValue{"K", "\xFF"}));
  EXPECT_THAT(read->config.mounts, ElementsAre(DeviceMount{"/c", "/h", true}));
  EXPECT_THAT(read->config.devices,
              ElementsAre(DeviceNode{"/dev/c", "/dev/h", "rw"}));
  EXPECT_THAT(read->config.annotations, ElementsAre(std::pair("a", "2")));
  EXPECT_THAT(read->config.cdi_devices, ElementsAre("v/c=1"));
  EXPECT_THAT(read->config.supplemental_groups, ElementsAre(44, 50'000));
}

TEST(ReadCreateContainer, FindsTheIdentityInLabels) {
  pb::CreateContainerRequest request;
  for (const auto& [key, value] :
       {std::pair("io.kubernetes.pod.uid", "u-1"),
        std::pair("io.kubernetes.pod.name", "p"),
        std::pair("io.kubernetes.pod.namespace", "ns")}) {
    *request.mutable_sandbox_config()->add_labels() =
        ToProto(NamedValue{key, value});
  }
  request.mutable_sandbox_config()->mutable_metadata()->set_name("by metadata");
  const auto read = ReadCreateContainer(request.SerializeAsString());
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->sandbox.identity,
            (SandboxIdentity{{"u-1"}, {"ns", "by metadata"}, 0}));
}

// What generated code takes, this takes, and the other way round for the whole
// request.
TEST(ReadCreateContainer, AgreesWithGeneratedCodeOnWhatIsARequest) {
  int good = 0;
  const bool whole = LiveEach({14, 4 * kRounds}, [&](Luck& luck) {
    pb::CreateContainerRequest request;
    Fill(luck, &request);
    std::string bytes = request.SerializeAsString();
    if (bytes.empty()) return;
    bytes[luck.Below(bytes.size())] = static_cast<char>(luck());
    if (!pb::CreateContainerRequest().ParseFromString(bytes)) return;
    ++good;
    EXPECT_THAT(ReadCreateContainer(bytes), IsOk());
    EXPECT_THAT(PatchCreateContainer(bytes, RandomEdits(luck)), IsOk());
  });
  if (whole) {
    EXPECT_GT(good, 0);
  }
}

}  // namespace
}  // namespace devmgr::cri
