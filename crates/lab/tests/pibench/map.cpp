// A library for the tests: std::map behind one lock. It writes the options that it was given to a
// file at the pool's path, so that a test can see how they arrived, and removes nothing. With
// -DOTHER_INTERFACE a function stands in front of the others, as in some branches of the interface.
#ifdef OTHER_INTERFACE
#include <cstddef>
#include <string>
struct tree_options_t;
class tree_api {
public:
    virtual ~tree_api() {}
    virtual bool bulk_load(const char *, std::size_t) { return false; }
    virtual bool find(const char *, std::size_t, char *) { return false; }
    virtual bool insert(const char *, std::size_t, const char *, std::size_t) { return false; }
    virtual bool update(const char *, std::size_t, const char *, std::size_t) { return false; }
    virtual bool remove(const char *, std::size_t) { return false; }
    virtual int scan(const char *, std::size_t, int, char *&) { return 0; }
};

extern "C" tree_api *create_tree(const tree_options_t &) { return new tree_api; }
#else
#include "tree_api.hpp"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <vector>

namespace {

std::uint64_t word(const char *bytes) {
    std::uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
}

class map_tree : public tree_api {
public:
    bool find(const char *key, std::size_t, char *value) override {
        std::lock_guard<std::mutex> hold(lock);
        auto found = map.find(word(key));
        if (found == map.end()) return false;
        std::memcpy(value, &found->second, sizeof found->second);
        return true;
    }
    bool insert(const char *key, std::size_t, const char *value, std::size_t) override {
        std::lock_guard<std::mutex> hold(lock);
        return map.emplace(word(key), word(value)).second;
    }
    bool update(const char *key, std::size_t, const char *value, std::size_t) override {
        std::lock_guard<std::mutex> hold(lock);
        auto found = map.find(word(key));
        if (found == map.end()) return false;
        found->second = word(value);
        return true;
    }
    bool remove(const char *key, std::size_t) override {
        std::lock_guard<std::mutex> hold(lock);
        return map.erase(word(key)) == 1;
    }
    int scan(const char *key, std::size_t, int wanted, char *&pairs) override {
        static thread_local std::vector<std::uint64_t> results;
        std::lock_guard<std::mutex> hold(lock);
        results.clear();
        int count = 0;
        auto at = map.lower_bound(word(key));
        for (; at != map.end() && count < wanted; ++at, ++count) {
            results.push_back(at->first);
            results.push_back(at->second);
        }
        pairs = reinterpret_cast<char *>(results.data());
        return count;
    }

private:
    std::map<std::uint64_t, std::uint64_t> map;
    std::mutex lock;
};

} // namespace

extern "C" tree_api *create_tree(const tree_options_t &options) {
    const std::string path = options.pool_path;
    std::ofstream(path) << options.key_size << ' ' << options.value_size << ' '
                        << options.pool_size << ' ' << options.num_threads << '\n';
    return new map_tree;
}
#endif
