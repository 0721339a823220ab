class GraphModule(torch.nn.Module):
    def forward(self, x : "f32[2, 64, 128]", norm1_weight : "f32[128]", norm1_bias : "f32[128]", qkv_weight : "f32[384, 128]", qkv_bias : "f32[384]", proj_weight : "f32[128, 128]", proj_bias : "f32[128]", norm2_weight : "f32[128]", norm2_bias : "f32[128]", up_weight : "f32[512, 128]", up_bias : "f32[512]", down_weight : "f32[128, 512]", down_bias : "f32[128]"):
        normed = torch.nn.functional.layer_norm(x, (128,), norm1_weight, norm1_bias, 1e-05)
        qkv = torch._C._nn.linear(normed, qkv_weight, qkv_bias)
        heads = qkv.view(2, 64, 3, 4, 32)
        split = heads.permute(2, 0, 3, 1, 4)
        q = split[0]
        k = split[1]
        v = split[2]
        attended = torch._C._nn.scaled_dot_product_attention(q, k, v)
        moved = attended.transpose(1, 2)
        merged = moved.reshape(2, 64, 128)
        projected = torch._C._nn.linear(merged, proj_weight, proj_bias)
        residual = x + projected
        normed_1 = torch.nn.functional.layer_norm(residual, (128,), norm2_weight, norm2_bias, 1e-05)
        up = torch._C._nn.linear(normed_1, up_weight, up_bias)
        act = torch._C._nn.gelu(up)
        down = torch._C._nn.linear(act, down_weight, down_bias)
        out = residual + down
        return (out,)
