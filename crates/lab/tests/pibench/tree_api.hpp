// The interface between PiBench and the trees that it measures, as far as a tree needs it: written
// down anew from the published declarations (github.com/sfu-dis/pibench, include/tree_api.hpp). The
// order of the virtual functions is the interface: callers know them by their place in the table.
#pragma once

#include <cstddef>
#include <string>

struct tree_options_t {
    std::size_t key_size;
    std::size_t value_size;
    std::string pool_path;
    std::size_t pool_size;
    std::size_t num_threads;
};

class tree_api {
public:
    virtual ~tree_api() {}
    virtual bool find(const char *key, std::size_t key_bytes, char *value) = 0;
    virtual bool insert(const char *key, std::size_t key_bytes, const char *value,
                        std::size_t value_bytes) = 0;
    virtual bool update(const char *key, std::size_t key_bytes, const char *value,
                        std::size_t value_bytes) = 0;
    virtual bool remove(const char *key, std::size_t key_bytes) = 0;
    // Points `pairs` to at most `wanted` pairs from `key` on; gives their number.
    virtual int scan(const char *key, std::size_t key_bytes, int wanted, char *&pairs) = 0;
};
