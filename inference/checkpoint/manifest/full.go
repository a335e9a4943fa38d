package manifest

// Full is Qwen3.6-35B-A3B as mlx-community published it in 4 bit: the ten files that the engine needs out of the 17 of that
// revision, 20,422,442,065 bytes. The shards hold the vision tower too (893 MB, which the loader skips): files are kept as published,
// so that other tools can use them.
//
// The digests of config.json, generation_config.json, chat_template.jinja, tokenizer_config.json and the index were computed from
// their bytes; those of the four shards and of tokenizer.json are the hub's own, as three independent projects record them.
// The second source has the same bytes but for tokenizer_config.json. Its commit is not known, so it is asked for its main branch;
// the digests say whether what comes is what is wanted.
func Full() Manifest {
	return Manifest{
		ID: "qwen3.6-35b-a3b",
		Files: []File{
			{"config.json", 23_591, mustDigest("a822a9e48b0aafbe3144ec37d4fb067e178ed96615ce6e4420b3149893cc5767")},
			{"generation_config.json", 202, mustDigest("e70c136c1b78ddc1fb0905bac8e733a4dc448d4f852a5dd75143fffc70be550e")},
			{"chat_template.jinja", 7_764, mustDigest("e84f32a23fdda27689f868aa4a1a5621f41133e51a48d7f3efcbea2839574259")},
			{"tokenizer_config.json", 1_139, mustDigest("e98f1901ac6f0adff67b1d540bfa0c36ac1a0cf59eb72ed78146ef89aafa1182")},
			{"model.safetensors.index.json", 215_755, mustDigest("0b28df60e33753a14e816d3b31577ae2c93884c58430a4a6de6ae9ea483842ea")},
			{"tokenizer.json", 19_989_343, mustDigest("87a7830d63fcf43bf241c3c5242e96e62dd3fdc29224ca26fed8ea333db72de4")},
			{"model-00001-of-00004.safetensors", 5_288_196_018, mustDigest("09f3e6ecb0b7af6e6a38bc8169a134c821b0924c2679b2bb8f4426ad38d032b8")},
			{"model-00002-of-00004.safetensors", 5_368_472_749, mustDigest("31dcdb1c49eebdb1505bd14e3cb33f9cf900bd2546b638f2464694ae763a033f")},
			{"model-00003-of-00004.safetensors", 5_368_324_139, mustDigest("3e66de06a1f03dade16a612a368cfce4a4c9caa4efd7d28185454384082cec03")},
			{"model-00004-of-00004.safetensors", 4_377_211_365, mustDigest("a5d0cf03519c26f8b506df6b0ba60526e5c08c8cea22d0c21ce92950e58a5422")},
		},
		Sources: []Source{
			{Repo: "mlx-community/Qwen3.6-35B-A3B-4bit", Revision: "38740b847e4cb78f352aba30aa41c76e08e6eb46"},
			{Repo: "lmstudio-community/Qwen3.6-35B-A3B-MLX-4bit", Revision: "main", Lacks: []string{"tokenizer_config.json"}},
		},
	}
}
