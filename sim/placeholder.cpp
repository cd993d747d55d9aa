// placeholder, removed with the first source of this folder
