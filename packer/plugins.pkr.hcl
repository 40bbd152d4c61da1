# In a file of its own: Packer before 1.7, which Debian has, does not know the block, and has the plugin built in.
packer {
  required_version = ">= 1.7.0"
  required_plugins {
    amazon = {
      source  = "github.com/hashicorp/amazon"
      version = ">= 1.2.9"
    }
  }
}
