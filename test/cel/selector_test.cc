// SPDX-License-Identifier: Apache-2.0
//
// The scenarios AL-066 to AL-076 of selectors over a device.
#include "cel/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>

#include "api/quantity.h"
#include "cel/device.h"
#include "cel/nested_binds.h"
#include "common/status.h"
#include "support/status_matchers.h"

namespace devmgr::cel {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kDriver = "dra.example.com";

SliceDevice ExampleDevice() {
  SliceDevice device;
  device.attributes["model"] = SharedText("A100");
  device.attributes["index"] = std::int64_t{7};
  device.attributes["flag"] = true;
  device.attributes["version"] = DeviceVersion{"1.10.0"};
  device.attributes["names"] = RareVector<SharedText>{"b", "a"};
  device.attributes["e/name"] = SharedText("x");
  device.capacity["memory"].value = *api::ParseQuantity("1024Mi");
  return device;
}

/// `text` with `D` for the domain of the example's driver.
std::string InDomain(std::string text) {
  const std::string domain = "device.attributes[\"dra.example.com\"]";
  for (std::size_t at = 0; (at = text.find("D.", at)) != text.npos;) {
    const bool is_word = at > 0 && (isalnum(text[at - 1]) != 0);
    if (is_word) {
      ++at;
      continue;
    }
    text.replace(at, 1, domain);
    at += domain.size();
  }
  return text;
}

absl::StatusOr<Verdict> Judge(const std::string& text,
                              const SliceDevice& device = ExampleDevice(),
                              const EvaluationOptions& options = {}) {
  const auto selector = Selector::Compile(InDomain(text));
  if (!selector.ok()) return selector.status();
  return (*selector)->Evaluate(MakeDevice(kDriver, device), options);
}

void ExpectMatch(const std::string& text, bool matches = true) {
  const auto verdict = Judge(text);
  ASSERT_THAT(verdict, IsOk()) << text;
  EXPECT_EQ(verdict->matches, matches) << text;
}

void ExpectCost(const std::string& text, std::uint64_t cost,
                std::uint64_t worst) {
  const auto verdict = Judge(text);
  ASSERT_THAT(verdict, IsOk()) << text;
  EXPECT_EQ(verdict->cost, cost) << text;
  EXPECT_EQ((*Selector::Compile(InDomain(text)))->max_cost(), worst) << text;
}

// AL-066
TEST(SelectorTest, ComparesTheDriver) {
  ExpectMatch("device.driver == 'dra.example.com'");
  ExpectMatch("device.driver == 'other.example.com'", false);
  const auto verdict = Judge("device.driver == 'dra.example.com'");
  EXPECT_EQ(verdict->cost, 4U);
}

// AL-067
TEST(SelectorTest, PutsNamesWithoutDomainUnderTheDriver) {
  ExpectMatch("D.model == 'A100'");
  ExpectMatch("has(D.name)", false);
  ExpectMatch("device.attributes['e'].name == 'x'");
}

// AL-068
TEST(SelectorTest, AnswersUnknownDomainsButNotUnknownNames) {
  ExpectMatch("device.attributes['other'].?x.orValue(1) == 1");
  ExpectMatch("device.attributes['other'] == {}");
  ExpectMatch("'other' in device.attributes", false);
  ExpectMatch("has(device.attributes.other)");
  ExpectMatch("'x' in device.attributes['other']", false);
  EXPECT_THAT(Judge("device.attributes['other'].x == 1"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no such key: x. consider using CEL optional "
                                 "chaining")));
}

// AL-069
TEST(SelectorTest, ComparesQuantitiesByAmount) {
  const std::string memory = "device.capacity['dra.example.com'].memory";
  ExpectMatch(memory + ".compareTo(quantity('1Gi')) == 0");
  ExpectMatch(memory + " == quantity('1Gi')");
  ExpectMatch(memory + ".isGreaterThan(quantity('1Gi'))", false);
  ExpectMatch(memory + ".isLessThan(quantity('1Gi'))", false);
  ExpectMatch(memory + ".isGreaterThan(quantity('1000M'))");
  ExpectMatch(memory + ".add(quantity('1Gi')) == quantity('2Gi')");
  ExpectMatch(memory + ".asInteger() == 1073741824");
  ExpectMatch("sign(quantity('-1m')) == -1");
}

// AL-070
TEST(SelectorTest, WantsABoolAsFarAsTypesAreKnown) {
  EXPECT_THAT(Judge("device.driver"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("must evaluate to bool or the unknown type, "
                                 "not string")));
  ExpectMatch("D.flag");
  EXPECT_THAT(Judge("D.model"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a value of type string, not bool")));
}

// AL-071
TEST(SelectorTest, ShowsWhereAnUndeclaredNameStands) {
  EXPECT_THAT(Judge("true &&\n  noSuchVar == 1"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "2:3: undeclared reference to 'noSuchVar' (in "
                       "container '')\n |   noSuchVar == 1\n | ..^"));
}

// AL-072
TEST(SelectorTest, StopsAtTheCostLimit) {
  const std::string thousand = "lists.range(1000)";
  EvaluationOptions options;
  EXPECT_EQ(options.cost_limit, 1'000'000U);
  options.cost_limit = 50'000;  // The default takes a while without -O2.
  EXPECT_THAT(Judge(thousand + ".all(x, " + thousand + ".all(y, x + y >= 0))",
                    ExampleDevice(), options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("actual cost limit exceeded")));
  EvaluationOptions cheap;
  cheap.cost_limit = 3;
  EXPECT_THAT(
      Judge("device.driver == 'dra.example.com'", ExampleDevice(), cheap),
      StatusIs(absl::StatusCode::kResourceExhausted));
}

// AL-073
TEST(SelectorTest, TakesAnUnsetSharingAsFalse) {
  ExpectMatch("device.allowMultipleAllocations == false");
  SliceDevice shared = ExampleDevice();
  shared.allow_multiple_allocations = true;
  EXPECT_TRUE(Judge("device.allowMultipleAllocations", shared)->matches);
}

// AL-074
TEST(SelectorTest, IsFalseOfAnUnknownDeviceWhenItIsFalseOfAllOfItsDriver) {
  const auto judge = [](const std::string& text) {
    return (*Selector::Compile(InDomain(text)))
        ->Evaluate(MakeUnknownDevice(std::string(kDriver)));
  };
  for (const char* text :
       {"device.driver == 'other.example.com'",
        "device.driver == 'other.example.com' && D.model == 'A100'",
        "D.index > 3 && device.driver.startsWith('other')"}) {
    const auto verdict = judge(text);
    ASSERT_THAT(verdict, IsOk()) << text;
    EXPECT_FALSE(verdict->matches) << text;
  }
  for (const char* text :
       {"D.model == 'A100'", "has(D.model)",
        "'model' in device.attributes['dra.example.com']",
        "!has(device.attributes.other)", "D.?model.orValue('') == 'A100'",
        "device.allowMultipleAllocations", "device.capacity.all(d, d != 'x')",
        "device.driver == 'other.example.com' || D.index > 3"}) {
    EXPECT_FALSE(judge(text).ok()) << text;
  }
}

TEST(SelectorTest, OrdersVersionsByPrecedence) {
  ExpectMatch("D.version.isGreaterThan(semver('1.2.0'))");
  ExpectMatch("D.version.compareTo(semver('v1.10', true)) == 0");
  ExpectMatch("D.version.major() == 1 && D.version.minor() == 10");
}

// AL-075
TEST(SelectorTest, IncludesTakesScalarsAndLists) {
  ExpectMatch("D.names.includes('a')");
  ExpectMatch("D.names.includes('c')", false);
  ExpectMatch("D.model.includes('A100')");
  ExpectMatch("D.names.exists(x, x == 'a')");
}

// AL-076
TEST(SelectorTest, RefusesTextOfMoreThanTenKi) {
  const std::string text = "true" + std::string(10 * 1024 - 4, ' ');
  EXPECT_THAT(Selector::Compile(text), IsOk());
  EXPECT_THAT(Selector::Compile(text + " "),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("10241 characters, the limit is 10240")));
}

// The figures were taken from Kubernetes' own library over the same device.
TEST(SelectorTest, CostsWhatKubernetesCounts) {
  ExpectCost("D.index > 0", 5, 5);
  ExpectCost("D.version.isGreaterThan(semver('1.2.0'))", 6, 6);
  ExpectCost("D.model.matches('^A')", 5, 11);
  ExpectCost("D.names.exists(x, x == 'a')", 17, 389);
  ExpectCost("true ? D.flag : false", 3, 4);
  ExpectCost("device.attributes['o'].?x.orValue(1) == 1", 4, 6);
  ExpectCost("[1,2,3].map(x, x*2) == [2,4,6]", 44, 74);
  ExpectCost("[1,2].exists_one(x, x == 1)", 8, 20);
  ExpectCost("optional.of(1).optMap(x, x + 1).value() == 2", 9, 19);
  ExpectCost("['a', 'b'].reverse().exists(y, y.replace('a', y, 7) == 'a')", 30,
             7'378'697'629'483'821'094U);
  ExpectCost(
      "cel.bind(d, device.attributes['dra.example.com'], "
      "d.flag && d.index == 7)",
      8, 18);
}

TEST(SelectorTest, EndsWhenInterrupted) {
  std::atomic<bool> interrupted = true;
  EvaluationOptions options;
  options.interrupted = &interrupted;
  EXPECT_THAT(Judge("lists.range(1000).all(x, x >= 0)", {}, options),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Judge("lists.range(50).all(x, x >= 0)", {}, options), IsOk());
}

TEST(SelectorTest, IsSharedByThreads) {
  const auto selector = Selector::Compile(
      InDomain("D.names.map(x, x + 'z').exists(y, y == 'az')"));
  ASSERT_THAT(selector, IsOk());
  const Value device = MakeDevice(kDriver, ExampleDevice());
  std::vector<std::thread> threads;
  std::atomic<int> matches = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) {
        if ((*selector)->Evaluate(device)->matches) ++matches;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(matches, 400);
}

// Upstream has no limit for this: `+` of lists costs 1, whatever their size.
TEST(SelectorTest, BoundsValuesThatGrowWithoutCost) {
  const std::string text = NestedBinds(
      "[0]", [](const std::string& last) { return last + " + " + last; },
      "v59.size() > 0");
  EXPECT_THAT(Judge(text), StatusIs(absl::StatusCode::kResourceExhausted,
                                    HasSubstr("too large")));
}

absl::StatusOr<Verdict> JudgeOld(const std::string& text,
                                 const SliceDevice& device) {
  const auto selector = Selector::Compile(text, Selector::Kind::kOldDevice);
  if (!selector.ok()) return selector.status();
  return (*selector)->EvaluateOld(MakeOldDevice(kDriver, device));
}

// AL-120
TEST(SelectorTest, EvaluatesSelectorsOfKubernetes130) {
  SliceDevice device = ExampleDevice();
  device.attributes["driver-version"] = DeviceVersion{"1.10.0"};
  device.attributes["n"] = RareVector<std::int64_t>{1, 2};
  device.attributes["dra.example.com/own"] = true;
  device.capacity["mem.example.com"].value = *api::ParseQuantity("8Gi");
  for (const std::string text :
       {"attributes.version['driver-version'].isGreaterThan(semver('1.2.0'))",
        R"(attributes.quantity['mem.example.com']
               .compareTo(quantity('8192Mi')) == 0)",
        "attributes.intslice['n'].isSorted()", "attributes.bool['own']",
        "attributes.string['e/name'] == 'x'",
        "attributes.stringslice['names'].exists(x, x == 'a')",
        "!('nope' in attributes.string)"}) {
    const auto verdict = JudgeOld(text, device);
    ASSERT_THAT(verdict, IsOk()) << text;
    EXPECT_TRUE(verdict->matches) << text;
  }
  for (const std::string text :
       {"attributes.intSlice['n'] == []", "device.driver == 'a'",
        "attributes.string['model']", "attributes == {}"}) {
    EXPECT_THAT(JudgeOld(text, device),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
}

// AL-121
TEST(SelectorTest, FailsOnAMissingNameOfKubernetes130) {
  const std::string test = "attributes.string['model'] == 'A100'";
  SliceDevice device;
  EXPECT_THAT(JudgeOld(test, device),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no such key: model")));
  EXPECT_FALSE(
      JudgeOld("'model' in attributes.string && " + test, device)->matches);
  // Under another kind it is missing, too.
  device.attributes["model"] = std::int64_t{1};
  EXPECT_THAT(JudgeOld(test, device),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

absl::StatusOr<std::optional<DeviceAttribute>> Derive(const std::string& text) {
  const auto selector =
      Selector::Compile(InDomain(text), Selector::Kind::kDerivedAttribute);
  if (!selector.ok()) return selector.status();
  return (*selector)->EvaluateAttribute(MakeDevice(kDriver, ExampleDevice()));
}

TEST(SelectorTest, DerivesAttributesOfEachKind) {
  const auto yields = [](const std::string& text, DeviceAttribute wanted) {
    const auto value = Derive(text);
    ASSERT_TRUE(value.ok()) << text << ": " << value.status();
    EXPECT_TRUE(*value == wanted) << text;
  };
  yields("D.index + 1", std::int64_t{8});
  yields("D.flag", true);
  yields("D.model + '!'", SharedText("A100!"));
  yields("semver('1.2.3-a.b+c')", DeviceVersion{SharedText("1.2.3-a.b")});
  yields("[1, 2]", RareVector<std::int64_t>({1, 2}));
  yields("[true]", RareVector<bool>({true}));
  yields("D.names", RareVector<SharedText>({"b", "a"}));
  yields("[semver('1.0.0')]",
         RareVector<DeviceVersion>({DeviceVersion{SharedText("1.0.0")}}));
  const auto empty = Derive("[]");
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_FALSE(empty->has_value());
}

TEST(SelectorTest, DerivesNothingElse) {
  for (const char* text :
       {"1.5", "{'a': 1}", "[[1]]", "quantity('1')", "null", "dyn(1.5)",
        "[dyn(1), dyn('x')]", "D.missing", "1 / 0", "(("}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Derive(text).status())) << text;
  }
  EXPECT_THAT(MessageOf(Derive("{'a': 1}").status()),
              HasSubstr("must evaluate to a primitive scalar (string, integer, "
                        "boolean, semver) or a list of these scalars, not "
                        "map(string, int)"));
}

TEST(SelectorTest, NamesFunctionsThatItLacks) {
  EXPECT_THAT(Judge("ip('10.0.0.1') == ip('10.0.0.1')"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("function 'ip' is not supported")));
}

}  // namespace
}  // namespace devmgr::cel
